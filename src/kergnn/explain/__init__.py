"""What a trained KerGNN looks at: filters, contributions, pictures, and how true they are."""

from kergnn.explain.attribution import explain
from kergnn.explain.contributions import (
    edge_contributions,
    node_contributions,
    walk_contributions,
)
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
from kergnn.explain.metrics import explanation_metrics, truth_auc
from kergnn.explain.pyg import explainable

__all__ = [
    "Importance",
    "Match",
    "Shape",
    "best_matches",
    "count_occurrences",
    "count_shapes",
    "draw_filters",
    "draw_graph",
    "edge_contributions",
    "explain",
    "explainable",
    "explanation_metrics",
    "filter_graphs",
    "filter_importance",
    "group_isomorphic",
    "node_contributions",
    "occurs",
    "ranked",
    "shape",
    "truth_auc",
    "walk_contributions",
]
