"""``geomgcn``: neighbours in the graph and neighbours in space, by direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn

from kergnn._checks import check_integer

# Neighbours in the graph or in space, times the four quadrants around a node.
NUM_RELATIONS = 8


@dataclass(frozen=True)
class Neighborhoods:
    """All structural neighbourhoods of a graph.

    Args:
        edge_index: (2, F) from a neighbour to a node, those in the graph and those in space.
        relation: (F,) from 0 to 7: the quadrant, plus 4 for a neighbour in space.
        weight: (F,) the inverse square root of the product of both nodes' numbers of neighbours.
    """

    edge_index: Tensor
    relation: Tensor
    weight: Tensor


class GeomGCN(nn.Module):
    r"""Pei et al., "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020.

    .. math::
        e_{ir}(v) = \sum_{u \in N_i(v),\, \tau(v, u) = r} \frac{h_{l-1}(u)}{\sqrt{d_u d_v}}, \qquad
        h_l(v) = \mathrm{ReLU}\Big(\mathop{\|}_{i, r} W_{ir}\, e_{ir}(v)\Big)

    where :math:`N_1` are the neighbours in the graph, :math:`N_2` those in a plane in which the
    graph is embedded, and :math:`\tau(v, u)` is the quadrant of u seen from v. The last layer
    takes the mean over i and r in place of putting them side by side.

    What differs from the paper: instead of Isomap, a Poincare embedding and struc2vec there is one
    embedding, landmark Isomap, see :func:`embed`; and :math:`N_2` are the nearest neighbours in
    number instead of all within a radius, since leaves of one node share one point.

    Args:
        in_channels: number of node features.
        hidden_channels: width of one relation; a hidden layer has eight of them.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: probability of dropping a feature before every layer.
        num_neighbors: number of neighbours in space.

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
        num_neighbors: int = 4,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.num_neighbors = check_integer("num_neighbors", num_neighbors, minimum=1)
        inputs = [in_channels] + [NUM_RELATIONS * hidden_channels] * (num_layers - 1)
        outputs = [hidden_channels] * (num_layers - 1) + [out_channels]
        self.maps = nn.ModuleList(
            nn.Linear(a, NUM_RELATIONS * b, bias=False)
            for a, b in zip(inputs, outputs, strict=True)
        )
        self.dropout = nn.Dropout(dropout)
        self._known: tuple[Tensor, Neighborhoods] | None = None

    def forward(
        self, x: Tensor, edge_index: Tensor, neighborhoods: Neighborhoods | None = None
    ) -> Tensor:
        """Return the logits of every node; ``neighborhoods`` spares a call of :func:`neighbors`."""
        around = neighborhoods or self._neighborhoods(edge_index, len(x))
        for linear in self.maps[:-1]:
            x = _by_relation(linear(self.dropout(x)), around).flatten(1).relu()
        return _by_relation(self.maps[-1](self.dropout(x)), around).mean(1)

    def _neighborhoods(self, edge_index: Tensor, num_nodes: int) -> Neighborhoods:
        """Return the neighbourhoods; those of the edge index seen last are remembered."""
        if self._known is None or self._known[0] is not edge_index:
            found = neighbors(edge_index.cpu(), num_nodes, self.num_neighbors)
            parts = (found.edge_index, found.relation, found.weight)
            self._known = edge_index, Neighborhoods(*(part.to(edge_index.device) for part in parts))
        return self._known[1]


def _by_relation(h: Tensor, around: Neighborhoods) -> Tensor:
    """Sum over the neighbours of each relation: (N, 8 c) -> (N, 8, c)."""
    source, target = around.edge_index
    rows = h.reshape(len(h) * NUM_RELATIONS, h.size(1) // NUM_RELATIONS)
    messages = rows.index_select(0, source * NUM_RELATIONS + around.relation)
    messages = messages * around.weight.to(h.dtype).unsqueeze(1)
    total = torch.zeros_like(rows).index_add(0, target * NUM_RELATIONS + around.relation, messages)
    return total.view(len(h), NUM_RELATIONS, rows.size(1))


def neighbors(edge_index: Tensor, num_nodes: int, num_neighbors: int = 4) -> Neighborhoods:
    """Return the neighbourhoods, each with the node itself, by quadrant."""
    position = embed(edge_index, num_nodes)
    found: NDArray[np.int64] = np.zeros((num_nodes, 0), dtype=np.int64)
    if num_nodes > 1:
        nearest = NearestNeighbors(n_neighbors=min(num_neighbors, num_nodes - 1)).fit(position)
        found = nearest.kneighbors(return_distance=False)  # of all points, without themselves
    target = torch.arange(num_nodes).repeat_interleave(found.shape[1])
    space = torch.stack([torch.from_numpy(found).flatten(), target])
    loops = torch.arange(num_nodes).expand(2, -1)
    parts, relations, weights = [], [], []
    for offset, edges in ((0, edge_index), (4, space)):
        edges = torch.cat([edges, loops], dim=1)
        degree = torch.bincount(edges[1], minlength=num_nodes).double()
        away = torch.from_numpy(position)[edges[0]] - torch.from_numpy(position)[edges[1]]
        parts.append(edges)
        relations.append(offset + 2 * (away[:, 0] > 0).long() + (away[:, 1] > 0).long())
        weights.append((degree[edges[0]] * degree[edges[1]]).rsqrt())
    return Neighborhoods(torch.cat(parts, dim=1), torch.cat(relations), torch.cat(weights))


def embed(edge_index: Tensor, num_nodes: int, num_landmarks: int = 64) -> NDArray[np.float64]:
    """Return a place in the plane for every node: landmark Isomap, (N, 2).

    The coordinates are the two principal components of the distances along edges to the
    ``num_landmarks`` nodes of largest degree (of equal ones the first). A landmark that cannot be
    reached counts as one step further than the farthest that can.
    """
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    row, col = edge_index.numpy()
    A = coo_array((np.ones(len(row)), (row, col)), shape=(num_nodes, num_nodes)).tocsr()
    degree = np.bincount(row, minlength=num_nodes)
    landmarks = np.argsort(-degree, kind="stable")[: max(2, num_landmarks)]
    distance = shortest_path(A, unweighted=True, indices=landmarks).T
    reached = np.isfinite(distance)
    distance[~reached] = distance[reached].max() + 1
    made = PCA(n_components=2, svd_solver="full").fit_transform(distance)
    return np.asarray(made, dtype=np.float64)
