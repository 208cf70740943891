"""The operations on ragged ego-graphs that kernels are written in."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs


def similarity(x: Tensor, attributes: Tensor) -> Tensor:
    r"""Return :math:`\langle x_a, w_{ib} \rangle` of every node with every filter node, (N, D, m).

    Computed once for each node of the graph; ego-graphs gather its rows.
    """
    return torch.einsum("nd,imd->nim", x, attributes)


def gather(values: Tensor, ego: EgoGraphs) -> Tensor:
    """Return the rows of every ego-graph's members: (N, ...) -> (T, ...).

    Unlike indexing, ``index_select`` has a derivative that adds up in a fixed order.
    """
    return values.index_select(0, ego.index)


def propagate(u: Tensor, ego: EgoGraphs) -> Tensor:
    r"""Return :math:`A U` within every ego-graph: (T, D, m) -> (T, D, m)."""
    return _symmetric_product(ego.edge_index, u.flatten(1)).view_as(u)


def sum_members(u: Tensor, ego: EgoGraphs) -> Tensor:
    """Return the sum over the members of every ego-graph: (T, D) -> (N, D)."""
    return u.new_zeros(ego.num_nodes, u.size(1)).index_add(0, ego.center, u)


def normalized_sum(
    h: Tensor, ego: EgoGraphs, member: Tensor | None = None, size: Tensor | None = None
) -> Tensor:
    r"""Return :math:`\sum_{a \in G_v} h_a / \sqrt{|G_v|\,|G_a|}` for every node: (N, D) -> (N, D).

    Args:
        h: (N, D) values of the nodes.
        ego: the ego-graphs.
        member: (T,) weights of the members, ``None`` for 1.
        size: (N,) what to take for the sizes, ``None`` for the numbers of members.
    """
    scale = (ego.size if size is None else size).to(h.dtype).rsqrt().unsqueeze(-1)
    terms = gather(scale * h, ego)
    return scale * sum_members(terms if member is None else member.unsqueeze(-1) * terms, ego)


class _SymmetricProduct(torch.autograd.Function):
    """Product with a symmetric 0/1 matrix, which is its own derivative.

    A sparse product holds nothing of the size of the edge list times the features, and the
    transpose that autograd would form is spared.
    """

    @staticmethod
    def forward(ctx: Any, edge_index: Tensor, u: Tensor) -> Tensor:
        ctx.save_for_backward(edge_index)
        ones = u.new_ones(edge_index.size(1))
        matrix = torch.sparse_coo_tensor(
            edge_index, ones, (len(u), len(u)), is_coalesced=True, check_invariants=False
        )
        return matrix @ u

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (edge_index,) = ctx.saved_tensors
        return None, _symmetric_product(edge_index, gradient)


def _symmetric_product(edge_index: Tensor, u: Tensor) -> Tensor:
    product: Tensor = _SymmetricProduct.apply(edge_index, u)  # type: ignore[no-untyped-call]
    return product
