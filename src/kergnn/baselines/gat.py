"""``gat``: attention over neighbours."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import elu
from torch_geometric.nn import GATConv

from kergnn._checks import check_integer


class GAT(nn.Module):
    r"""Velickovic et al., "Graph Attention Networks", ICLR 2018.

    .. math::
        h_l(v) = \mathop{\|}_{k=1}^{K} \mathrm{ELU}\Big(
        \sum_{u \in N(v) \cup v} \alpha^k_{vu} W^k h_{l-1}(u)\Big), \qquad
        \alpha^k_{vu} = \mathop{\mathrm{softmax}}_{u \in N(v) \cup v}\,
        \mathrm{LeakyReLU}\big(a^k \cdot [W^k h_{l-1}(v) \,\|\, W^k h_{l-1}(u)]\big)

    The heads of the last layer are averaged instead.

    Args:
        in_channels: number of node features.
        hidden_channels: width of a layer, all heads together.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: probability of dropping a feature before every layer, and an attention weight.
        heads: number of heads K; it must divide ``hidden_channels``.

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
        dropout: float = 0.6,
        heads: int = 8,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        if hidden_channels % check_integer("heads", heads, minimum=1):
            raise ValueError(f"heads is {heads}: it must divide hidden_channels, {hidden_channels}")
        self.convs, channels = nn.ModuleList(), in_channels
        for _ in range(num_layers - 1):
            self.convs.append(GATConv(channels, hidden_channels // heads, heads, dropout=dropout))
            channels = hidden_channels
        self.convs.append(GATConv(channels, out_channels, heads, concat=False, dropout=dropout))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the logits of every node."""
        for conv in self.convs[:-1]:
            x = elu(conv(self.dropout(x), edge_index))
        out: Tensor = self.convs[-1](self.dropout(x), edge_index)
        return out
