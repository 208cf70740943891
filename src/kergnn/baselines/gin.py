"""``gin``: the graph isomorphism network."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GINConv, global_add_pool

from kergnn._checks import check_integer
from kergnn.baselines.neighbors import neighbor_sum


class GIN(nn.Module):
    r"""Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019, as Errica et al. (ICLR
    2020) set it up.

    .. math::
        h_0(v) = \mathrm{MLP}_0(x_v), \qquad
        h_l(v) = \mathrm{MLP}_l\Big((1 + \epsilon_l)\, h_{l-1}(v)
        + \sum_{u \in N(v)} h_{l-1}(u)\Big), \qquad
        \hat y(G) = \sum_{l=0}^{L} W_l \sum_{v \in G} h_l(v)

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions L.
        dropout: probability of dropping an output of :math:`W_l`.
        train_eps: whether :math:`\epsilon_l` is trained; otherwise it is zero.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.0,
        train_eps: bool = True,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.first = _mlp(in_channels, hidden_channels)
        self.convs = nn.ModuleList(
            _Conv(_mlp(hidden_channels, hidden_channels), train_eps=train_eps)
            for _ in range(num_layers)
        )
        self.heads = nn.ModuleList(
            nn.Linear(hidden_channels, out_channels) for _ in range(num_layers + 1)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        h = self.first(x)
        out: Tensor = self.dropout(self.heads[0](global_add_pool(h, batch, num_graphs)))
        for conv, head in zip(self.convs, self.heads[1:], strict=True):
            h = conv(h, edge_index)
            out = out + self.dropout(head(global_add_pool(h, batch, num_graphs)))
        return out


class _Conv(GINConv):  # type: ignore[misc]
    """PyG's layer to the bit, without writing its messages down."""

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """Return the features (N, D) of the next layer."""
        if self.explain:  # PyG's explainers put masks on messages
            return super().forward(h, edge_index)  # type: ignore[no-any-return]
        out: Tensor = self.nn(neighbor_sum(h, edge_index) + (1 + self.eps) * h)
        return out


def _mlp(in_channels: int, hidden_channels: int) -> nn.Module:
    """Two layers; a bias before a batch norm would be without effect."""
    return nn.Sequential(
        nn.Linear(in_channels, hidden_channels, bias=False),
        BatchNorm(hidden_channels, allow_single_element=True),
        nn.ReLU(),
        nn.Linear(hidden_channels, hidden_channels, bias=False),
        BatchNorm(hidden_channels, allow_single_element=True),
        nn.ReLU(),
    )
