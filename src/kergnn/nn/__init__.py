"""The trainable modules: filters, the KerGNN layer, the model."""

from kergnn.nn.calibration import batch_norms, calibrated_norms
from kergnn.nn.conv import KerGNNConv
from kergnn.nn.filters import GraphFilters
from kergnn.nn.inputs import WithWords, WordMap
from kergnn.nn.model import KerGNN

__all__ = [
    "GraphFilters",
    "KerGNN",
    "KerGNNConv",
    "WithWords",
    "WordMap",
    "batch_norms",
    "calibrated_norms",
]
