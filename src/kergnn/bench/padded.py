"""The paper's formula on ego-graphs padded to one size, as it is written down there."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs


def pad(ego: EgoGraphs, max_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return node (N, n), mask (N, n) and adjacency (N, n, n) with n = ``max_nodes``."""
    position = torch.arange(ego.num_members) - ego.ptr[ego.center]
    node = torch.zeros(ego.num_nodes, max_nodes, dtype=torch.long)
    mask = torch.zeros(ego.num_nodes, max_nodes)
    A = torch.zeros(ego.num_nodes, max_nodes, max_nodes)
    node[ego.center, position], mask[ego.center, position] = ego.index, 1.0
    row, col = ego.edge_index
    A[ego.center[row], position[row], position[col]] = 1.0
    return node, mask, A


def padded_random_walk(
    x: Tensor, node: Tensor, mask: Tensor, A: Tensor, B: Tensor, W: Tensor, num_steps: int
) -> Tensor:
    """Return every K_p of ``rw`` (P + 1, N, D) by dense products over padded ego-graphs.

    Args:
        x: (N, d) node features.
        node: (N, n) members of every ego-graph, filled up with node 0.
        mask: (N, n) one for members, zero for filling.
        A: (N, n, n) adjacency of every ego-graph.
        B: (D, m, m) adjacency of the filters.
        W: (D, m, d) attributes of the filters.
        num_steps: the longest walk P.
    """
    X = x[node] * mask.unsqueeze(-1)
    S = torch.einsum("nad,imd->nima", X, W)
    K = [(S * S).sum((2, 3))]
    for _ in range(num_steps):
        X = torch.einsum("nab,nbd->nad", A, X)
        W = torch.einsum("iab,ibd->iad", B, W)
        K.append((S * torch.einsum("nad,imd->nima", X, W)).sum((2, 3)))
    return torch.stack(K)
