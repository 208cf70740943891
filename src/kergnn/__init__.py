"""KerGNN: graph neural networks whose filters are small trainable graphs.

Names are imported when they are first used, so that ``kergnn --help`` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kergnn.data import as_graphs
    from kergnn.egographs import EgoGraphs, EgoSubgraphs
    from kergnn.nn import GraphFilters, KerGNN, KerGNNConv, calibrated_norms
    from kergnn.seedloader import SeedLoader
    from kergnn.sklearn import KerGNNClassifier, KerGNNNodeClassifier, RandomWalkKernel

__version__ = "0.1.0"

__all__ = [
    "EgoGraphs",
    "EgoSubgraphs",
    "GraphFilters",
    "KerGNN",
    "KerGNNClassifier",
    "KerGNNConv",
    "KerGNNNodeClassifier",
    "RandomWalkKernel",
    "SeedLoader",
    "__version__",
    "as_graphs",
    "calibrated_norms",
]

_ELSEWHERE = {
    "EgoGraphs": "kergnn.egographs",
    "EgoSubgraphs": "kergnn.egographs",
    "KerGNNClassifier": "kergnn.sklearn",
    "KerGNNNodeClassifier": "kergnn.sklearn",
    "RandomWalkKernel": "kergnn.sklearn",
    "SeedLoader": "kergnn.seedloader",
    "as_graphs": "kergnn.data",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "kergnn.nn")), name)
    raise AttributeError(f"module 'kergnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
