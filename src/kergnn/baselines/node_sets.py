"""Sets of two and three nodes as the nodes of a graph of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kergnn.batches import offsets, ranges


@dataclass(frozen=True)
class NodeSets:
    """The sets of k nodes of a batch of graphs, as nodes of a graph of their own.

    Args:
        members: (M, k) nodes of every set, ascending.
        edge_index: (2, F) neighbouring sets: one node of a set gives way to a neighbour of it.
        num_edges: (M,) number of edges within a set: for k <= 3 its isomorphism type.
        batch: (M,) graph of every set.
    """

    members: Tensor
    edge_index: Tensor
    num_edges: Tensor
    batch: Tensor


def node_sets(edge_index: Tensor, batch: Tensor, size: int, connected: bool = False) -> NodeSets:
    """Return the sets of ``size`` (2 or 3) nodes of every graph and their neighbourhoods.

    Args:
        edge_index: (2, E) sorted, both directions.
        batch: (N,) graph of every node, ascending.
        size: number of nodes of a set.
        connected: whether only sets that induce a connected subgraph are taken.
    """
    num_nodes = len(batch)
    ptr = offsets(torch.bincount(edge_index[0], minlength=num_nodes))
    if connected:
        members = edge_index.T
        if size == 3:  # a connected set of three has a node next to both others
            rows, third = _neighbors(members[:, 0], ptr, edge_index[1])
            members = torch.cat([members[rows], third.unsqueeze(1)], dim=1)
            members = members[members[:, 1] != members[:, 2]]
        codes = torch.from_numpy(np.unique(_codes(members, num_nodes).cpu().numpy()))
        codes = codes.to(batch.device)
    else:
        members = torch.arange(num_nodes, device=batch.device).unsqueeze(1)
        stop = torch.bincount(batch).cumsum(0)
        for _ in range(size - 1):
            last = members[:, -1]
            count = stop[batch[last]] - last - 1
            more = ranges(last + 1, count)
            members = torch.cat([members.repeat_interleave(count, 0), more.unsqueeze(1)], dim=1)
        codes = _codes(members, num_nodes)
    digits = [codes // num_nodes**i % num_nodes for i in reversed(range(size))]
    members = torch.stack(digits, dim=1)

    edge_codes = edge_index[0] * num_nodes + edge_index[1]
    num_edges = torch.zeros_like(codes)
    edges = [edge_index.new_zeros(2, 0)]
    for i in range(size):
        rest = torch.cat([members[:, :i], members[:, i + 1 :]], dim=1)
        for j in range(i):
            num_edges += _find(members[:, j] * num_nodes + members[:, i], edge_codes) >= 0
        rows, new = _neighbors(members[:, i], ptr, edge_index[1])
        swapped = torch.cat([rest[rows], new.unsqueeze(1)], dim=1)
        target = _find(_codes(swapped, num_nodes), codes)  # -1, too, if the node was there before
        edges.append(torch.stack([target, rows])[:, target >= 0])
    return NodeSets(members, torch.cat(edges, dim=1), num_edges, batch[members[:, 0]])


def _codes(members: Tensor, num_nodes: int) -> Tensor:
    """Return one number for every set, whatever the order of its members."""
    digits = members.sort(dim=1).values
    code = digits[:, 0]
    for i in range(1, digits.size(1)):
        code = code * num_nodes + digits[:, i]
    return code


def _neighbors(nodes: Tensor, ptr: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    """Return all neighbours of all ``nodes``, and the position in ``nodes`` each belongs to."""
    count = ptr[nodes + 1] - ptr[nodes]
    rows = torch.arange(len(nodes), device=nodes.device).repeat_interleave(count)
    return rows, col[ranges(ptr[nodes], count)]


def _find(codes: Tensor, among: Tensor) -> Tensor:
    """Return the position of every code in the ascending list ``among``, -1 where it is absent."""
    if not len(among):
        return torch.full_like(codes, -1)
    position = torch.searchsorted(among, codes).clamp(max=len(among) - 1)
    return torch.where(among[position] == codes, position, -1)
