"""KerGNN: graph neural networks whose filters are small trainable graphs.

Names are imported when they are first used, so that ``kergnn --help`` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:
    if name in ("EgoGraphs", "EgoSubgraphs"):
        return getattr(import_module("kergnn.egographs"), name)
    if name in __all__:
        return getattr(import_module("kergnn.nn"), name)
    raise AttributeError(f"module 'kergnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
