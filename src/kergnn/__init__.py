"""KerGNN: graph neural networks whose filters are small trainable graphs."""

from kergnn.egographs import EgoGraphs, EgoSubgraphs
from kergnn.nn import GraphFilters, KerGNN, KerGNNConv, calibrated_norms

__version__ = "0.1.0"

__all__ = [
    "EgoGraphs",
    "EgoSubgraphs",
    "GraphFilters",
    "KerGNN",
    "KerGNNConv",
    "__version__",
    "calibrated_norms",
]
