"""``rwgnn``: random walks between hidden graphs and the whole graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_add_pool

from kergnn._checks import check_integer
from kergnn.baselines.neighbors import neighbor_sum
from kergnn.nn import GraphFilters

# With more features a matrix of pairs of them costs more than the nodes of a graph.
_FEW_FEATURES = 64


class RWGNN(nn.Module):
    r"""Nikolentzos and Vazirgiannis, "Random Walk Graph Neural Networks", NeurIPS 2020.

    .. math::
        h(v) = \mathrm{sigmoid}(W x_v), \qquad
        \Phi(G) = \mathop{\|}_{i=1}^{D} \mathop{\|}_{p=0}^{P} K_p(G, H_i), \qquad
        \hat y(G) = \mathrm{MLP}(\mathrm{norm}(\Phi(G)))

    with D trainable hidden graphs :math:`H_i` and the random-walk kernel :math:`K_p` of KerGNN
    (:func:`kergnn.kernels.random_walk`), here between a hidden graph and the whole graph instead
    of an ego-graph. Nodes are many then and features few, so it is evaluated as an inner product
    of two matrices of size d x d,

    .. math::
        K_p(G, H_i) = \langle X^\top A^p X,\; W_i^\top B_i^p W_i \rangle ,

    which says what is seen of a graph: how its features go together at the two ends of walks. Where
    all nodes have the same features that is the number of walks, so regular graphs of the same size
    and degree look alike.

    Args:
        in_channels: number of node features.
        hidden_channels: number of hidden graphs D, and width of the MLP.
        out_channels: number of classes.
        dropout: probability of dropping a hidden feature of the MLP.
        filter_size: number of nodes of a hidden graph.
        num_steps: longest walk P.
        input_channels: size of the map W, ``None`` for the features as they are.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E) with both directions of edges,
          graph of every node (N,), ascending
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
        self.filters = GraphFilters(channels, hidden_channels, filter_size)
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
        h, B = self.input_map(x), self.filters.adjacency()
        V: list[Tensor] = [self.filters.attributes]
        for _ in range((self.num_steps + 1) // 2):
            V.append(B @ V[-1])
        form = _by_features if h.size(1) <= _FEW_FEATURES else _by_nodes
        # A^{q+r} = A^q A^r and B^{q+r} = B^q B^r: both adjacencies are symmetric.
        steps = [(p // 2, p - p // 2) for p in range(self.num_steps + 1)]
        return form(h, edge_index, batch, num_graphs, V, steps)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        K = self.kernel_values(x, edge_index, batch, num_graphs)
        out: Tensor = self.head(K.permute(1, 2, 0).flatten(1))
        return out


def _by_features(
    h: Tensor,
    edge_index: Tensor,
    batch: Tensor,
    num_graphs: int,
    V: list[Tensor],
    steps: list[tuple[int, int]],
) -> Tensor:
    """Evaluate the kernel by matrices of size d x d, one of a graph and one of a filter.

    ``V`` are the powers :math:`B^q W` (D, m, d), ``steps`` the q and r of every p = q + r.
    """
    size = torch.bincount(batch, minlength=num_graphs).tolist()
    U = [h]
    while len(U) < len(V):
        U.append(neighbor_sum(U[-1], edge_index))
    K = []
    for q, r in steps:
        pairs = zip(torch.split(U[q], size), torch.split(U[r], size), strict=True)
        of_graphs = torch.stack([left.T @ right for left, right in pairs])
        of_filters = V[q].transpose(1, 2) @ V[r]
        K.append(of_graphs.flatten(1) @ of_filters.flatten(1).T)
    return torch.stack(K)


def _by_nodes(
    h: Tensor,
    edge_index: Tensor,
    batch: Tensor,
    num_graphs: int,
    V: list[Tensor],
    steps: list[tuple[int, int]],
) -> Tensor:
    """Evaluate the kernel by the similarities (N, D m) of nodes and filter nodes, A^q X V_q^T."""
    Z = []
    for q, of_filters in enumerate(V):
        similarity = h @ of_filters.flatten(0, 1).T
        for _ in range(q):
            similarity = neighbor_sum(similarity, edge_index)
        Z.append(similarity.view(len(h), *of_filters.shape[:2]))
    return torch.stack([global_add_pool((Z[q] * Z[r]).sum(2), batch, num_graphs) for q, r in steps])
