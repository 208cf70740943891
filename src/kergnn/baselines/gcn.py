"""``gcn``: the graph convolutional network."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from kergnn._checks import check_integer


class GCN(nn.Module):
    r"""Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR
    2017.

    .. math::
        H_l = \mathrm{ReLU}\big(\tilde D^{-1/2} (A + I) \tilde D^{-1/2} H_{l-1} W_l\big)

    without the ReLU in the last layer.

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers but the last.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: probability of dropping a feature before every layer.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E)
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        widths = [in_channels] + [hidden_channels] * (num_layers - 1) + [out_channels]
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in pairwise(widths))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the logits of every node."""
        for conv in self.convs[:-1]:
            x = conv(self.dropout(x), edge_index).relu()
        out: Tensor = self.convs[-1](self.dropout(x), edge_index)
        return out
