"""``structure-free``: what the nodes are, without the edges between them."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from kergnn._checks import check_integer


class StructureFree(nn.Module):
    r"""The structure-free baseline of Errica et al., "A Fair Comparison of Graph Neural Networks
    for Graph Classification", ICLR 2020.

    .. math::
        \hat y(G) = \mathrm{MLP}\Big(\sum_{v \in G} x_v\Big)

    A system that does no better than this one has not used the edges.

    Args:
        in_channels: number of node features.
        hidden_channels: width of the MLP.
        out_channels: number of classes.
        num_layers: number of hidden layers of the MLP.
        dropout: probability of dropping a hidden feature.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels, parts = in_channels, []
        for _ in range(check_integer("num_layers", num_layers, minimum=1)):
            parts += [nn.Linear(channels, hidden_channels), nn.ReLU(), nn.Dropout(dropout)]
            channels = hidden_channels
        self.mlp = nn.Sequential(*parts, nn.Linear(channels, out_channels))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits; ``edge_index`` is not looked at."""
        out: Tensor = self.mlp(global_add_pool(x, batch, num_graphs))
        return out
