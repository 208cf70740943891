"""Shapes that filters can start from: the most frequent ones among real ego-graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn._checks import check_integer
from kergnn.egographs import EgoGraphs


def frequent_shapes(ego: EgoGraphs, filter_size: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the most frequent shapes of ego-graphs, cut to ``filter_size`` nodes.

    Of an ego-graph its first members stay, as ``max_nodes`` would cut it. Two have the same shape
    if colour refinement, started from the numbers of closed walks, cannot tell them apart: for
    connected graphs of up to six nodes that is isomorphism. Shapes without an edge do not count.

    Args:
        ego: the ego-graphs.
        filter_size: number of nodes m.
        count: number of shapes.

    Returns:
        adjacency (k, m, m) of zeros and ones and the nodes (k, m) of an ego-graph of each shape,
        -1 where it has fewer, for at most ``count`` shapes, the most frequent one first.
    """
    m = check_integer("filter_size", filter_size, minimum=1)
    A = _leading_adjacency(ego, m)
    code = _codes(A)
    shapes, inverse, frequency = torch.unique(code, return_inverse=True, return_counts=True)
    # The first ego-graph of every shape stands for it.
    first = torch.full((len(shapes),), len(code)).scatter_reduce(
        0, inverse, torch.arange(len(code)), "amin"
    )
    edges = A[first].flatten(1).sum(1)
    order = (frequency * (edges > 0)).argsort(descending=True, stable=True)
    chosen = first[order[: min(count, int((edges > 0).sum()))]]
    slot = torch.arange(m)
    place = (ego.ptr[chosen].unsqueeze(1) + slot).clamp(max=max(ego.num_members - 1, 0))
    nodes = ego.index[place].masked_fill(slot >= ego.size[chosen].unsqueeze(1), -1)
    return A[chosen].to(torch.get_default_dtype()), nodes


def _leading_adjacency(ego: EgoGraphs, m: int) -> Tensor:
    """Return the adjacency of the first m members of every ego-graph: (N, m, m)."""
    row, col = ego.edge_index
    v = ego.center[row]
    a, b = row - ego.ptr[v], col - ego.ptr[v]
    keep = (a < m) & (b < m)
    A = torch.zeros(ego.num_nodes, m, m, dtype=torch.long)
    A[v[keep], a[keep], b[keep]] = 1
    return A


def _codes(A: Tensor) -> Tensor:
    """Return a number for the shape of every graph: (N,)."""
    square = A @ A
    colour = _mix(square.diagonal(dim1=1, dim2=2))
    for walk in (square @ A, square @ square):
        colour = _mix(colour * 31 + walk.diagonal(dim1=1, dim2=2))
    for _ in range(A.size(1)):
        colour = _mix(colour * 31 + (A @ colour.unsqueeze(2)).squeeze(2))
    return colour.sum(1)


def _mix(value: Tensor) -> Tensor:
    """Scramble integers, so that sums of them tell multisets apart."""
    value = (value ^ (value >> 30)) * -4658895280553007687
    value = (value ^ (value >> 27)) * -7723592293110705685
    return value ^ (value >> 31)
