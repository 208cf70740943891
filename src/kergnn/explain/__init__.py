"""What a trained KerGNN looks at: contributions, explanations, and how true they are."""

from kergnn.explain.attribution import explain
from kergnn.explain.contributions import (
    edge_contributions,
    node_contributions,
    walk_contributions,
)

__all__ = [
    "edge_contributions",
    "explain",
    "node_contributions",
    "walk_contributions",
]
