"""What a trained KerGNN looks at: filters, contributions, pictures, and how true they are."""

from kergnn.explain.drawing import draw_filters, draw_graph
from kergnn.explain.filters import (
    Importance,
    filter_graphs,
    filter_importance,
    group_isomorphic,
    ranked,
)
from kergnn.explain.matches import (
    Match,
    Shape,
    best_matches,
    count_occurrences,
    count_shapes,
    occurs,
    shape,
)

__all__ = [
    "Importance",
    "Match",
    "Shape",
    "best_matches",
    "count_occurrences",
    "count_shapes",
    "draw_filters",
    "draw_graph",
    "filter_graphs",
    "filter_importance",
    "group_isomorphic",
    "occurs",
    "ranked",
    "shape",
]
