"""``rwgnn``: random walks between hidden graphs and the whole graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from kergnn._checks import check_integer
from kergnn.egographs import EgoGraphs
from kergnn.nn import GraphFilters


class RWGNN(nn.Module):
    r"""Nikolentzos and Vazirgiannis, "Random Walk Graph Neural Networks", NeurIPS 2020.

    .. math::
        h(v) = \mathrm{sigmoid}(W x_v), \qquad
        \Phi(G) = \mathop{\|}_{i=1}^{D} \mathop{\|}_{p=0}^{P} K_p(G, H_i), \qquad
        \hat y(G) = \mathrm{MLP}(\mathrm{norm}(\Phi(G)))

    with D trainable hidden graphs :math:`H_i` and the random-walk kernel :math:`K_p` of KerGNN
    (:func:`kergnn.kernels.random_walk`), here between a hidden graph and the whole graph instead
    of an ego-graph. A graph whose nodes all have the same features is seen through its numbers of
    walks only, so regular graphs of the same size and degree look alike.

    Args:
        in_channels: number of node features.
        hidden_channels: number of hidden graphs D, and width of the MLP.
        out_channels: number of classes.
        dropout: probability of dropping a hidden feature of the MLP.
        filter_size: number of nodes of a hidden graph.
        num_steps: longest walk P.
        input_channels: size of the map W, ``None`` for the features as they are.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.2,
        filter_size: int = 5,
        num_steps: int = 2,
        input_channels: int | None = 16,
    ) -> None:
        super().__init__()
        self.num_steps = check_integer("num_steps", num_steps, minimum=0)
        self.input_map = (
            nn.Identity()
            if input_channels is None
            else nn.Sequential(nn.Linear(in_channels, input_channels), nn.Sigmoid())
        )
        channels = in_channels if input_channels is None else input_channels
        # The fused engine is for one ego-graph a node; here there is one a graph.
        self.filters = GraphFilters(channels, hidden_channels, filter_size, engine="torch")
        width = hidden_channels * (num_steps + 1)
        self.head = nn.Sequential(
            BatchNorm(width, allow_single_element=True),
            nn.Linear(width, hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def kernel_values(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int
    ) -> Tensor:
        """Return every K_p of every graph with every hidden graph: (P + 1, num_graphs, D)."""
        graphs = whole_graphs(edge_index, batch, num_graphs)
        K: Tensor = self.filters(self.input_map(x), graphs, self.num_steps)
        return K

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        K = self.kernel_values(x, edge_index, batch, num_graphs)
        out: Tensor = self.head(K.permute(1, 2, 0).flatten(1))
        return out


def whole_graphs(edge_index: Tensor, batch: Tensor, num_graphs: int) -> EgoGraphs:
    """Return one "ego-graph" a graph instead of one a node: the whole graph, in node order.

    Args:
        edge_index: (2, E) sorted, both directions.
        batch: (N,) graph of every node, ascending.
        num_graphs: number of graphs, empty ones included.
    """
    size = torch.bincount(batch, minlength=num_graphs)
    first = size.cumsum(0) - size
    row, col = edge_index
    return EgoGraphs(
        index=torch.arange(len(batch), device=batch.device),
        size=size,
        hop=torch.zeros_like(batch),
        degree=torch.bincount(row, minlength=len(batch)),
        neighbor=col - first[batch[row]],
    )
