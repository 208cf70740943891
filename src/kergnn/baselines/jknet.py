"""``jknet``: jumping knowledge."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GCNConv, JumpingKnowledge

from kergnn._checks import check_choice, check_integer


class JKNet(nn.Module):
    r"""Xu et al., "Representation Learning on Graphs with Jumping Knowledge Networks", ICML 2018.

    .. math::
        H_l = \mathrm{ReLU}\big(\tilde D^{-1/2} (A + I) \tilde D^{-1/2} H_{l-1} W_l\big), \qquad
        \hat Y = W \cdot \mathrm{aggr}(H_1, \ldots, H_L)

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions L.
        dropout: probability of dropping a feature before every layer.
        aggr: ``"cat"`` for all layers side by side, ``"max"`` for the largest of each feature.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E)
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        dropout: float = 0.5,
        aggr: str = "cat",
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        check_choice("aggr", aggr, ["cat", "max"])
        widths = [in_channels] + [hidden_channels] * (num_layers - 1)
        self.convs = nn.ModuleList(GCNConv(width, hidden_channels) for width in widths)
        self.jump = JumpingKnowledge(aggr)
        self.dropout = nn.Dropout(dropout)
        width = hidden_channels * (num_layers if aggr == "cat" else 1)
        self.head = nn.Linear(width, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the logits of every node."""
        layers = []
        for conv in self.convs:
            x = conv(self.dropout(x), edge_index).relu()
            layers.append(x)
        out: Tensor = self.head(self.dropout(self.jump(layers)))
        return out
