"""The three operations on ragged ego-graphs that kernels are written in."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs


def similarity(x: Tensor, attributes: Tensor) -> Tensor:
    r"""Return :math:`\langle x_a, w_{ib} \rangle` of every node with every filter node, (N, D, m).

    Computed once for each node of the graph; ego-graphs gather its rows.
    """
    return torch.einsum("nd,imd->nim", x, attributes)


def propagate(u: Tensor, ego: EgoGraphs) -> Tensor:
    r"""Return :math:`A U` within every ego-graph: (T, ...) -> (T, ...)."""
    row, col = ego.edge_index
    return torch.zeros_like(u).index_add(0, row, u[col])


def sum_members(u: Tensor, ego: EgoGraphs) -> Tensor:
    """Return the sum over the members of every ego-graph: (T, D) -> (N, D)."""
    return u.new_zeros(ego.num_nodes, u.size(1)).index_add(0, ego.center, u)
