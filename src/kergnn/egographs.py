r"""Ego-graphs: the neighbourhood subgraph :math:`G_v` of every node, in ragged form.

:math:`G_v` is the subgraph induced by :math:`v` and the nodes within ``num_hops`` hops of it. The
ego-graphs of a graph are stored as counts and local positions, never as offsets, so that the
ego-graphs of a batch are the concatenation of those of its graphs; only the node ids move.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

import numba
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from kergnn._checks import check_edge_index, check_integer

IntArray: TypeAlias = NDArray[np.int64]

# Below this many nodes a second thread costs more than it saves.
_NODES_PER_THREAD = 8192


@dataclass(frozen=True)
class EgoGraphs:
    r"""The ego-graphs of all nodes of a graph (or of a batch of graphs).

    With :math:`N` nodes, :math:`T = \sum_v |G_v|` members in all ego-graphs together and :math:`S`
    directed edges in all ego-graphs together:

    Args:
        index: (T,) node of every member; the members of :math:`G_0` first, then :math:`G_1`, ...
        size: (N,) number of members of every ego-graph.
        hop: (T,) hop distance of every member from its centre.
        degree: (T,) number of neighbours of every member within its ego-graph.
        neighbor: (S,) those neighbours, as ascending positions within the ego-graph, member after
            member.

    Members are ordered by hop distance, so the centre comes first. Within one hop the node with
    the larger degree in the whole graph comes first and, at equal degree, the smaller node id.
    ``max_nodes`` cuts this list: nearer nodes stay. Row order is the same for features
    (``x[ego.index]``) and adjacency (``ego.edge_index``).
    """

    index: Tensor
    size: Tensor
    hop: Tensor
    degree: Tensor
    neighbor: Tensor

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        num_hops: int = 1,
        max_nodes: int | None = None,
    ) -> EgoGraphs:
        """Build the ego-graphs of all nodes.

        The graph is taken as undirected and simple: edges given in one direction count in both,
        double edges count once, self-loops do not count.

        Args:
            edge_index: (2, E) integer tensor.
            num_nodes: number of nodes, isolated ones included.
            num_hops: radius of the ego-graphs.
            max_nodes: largest size of an ego-graph, the centre included; ``None`` for no limit.
        """
        num_nodes = check_integer("num_nodes", num_nodes, minimum=0)
        num_hops = check_integer("num_hops", num_hops, minimum=0)
        if max_nodes is not None:
            max_nodes = check_integer("max_nodes", max_nodes, minimum=1)
        check_edge_index(edge_index, num_nodes)
        limit = num_nodes if max_nodes is None else min(max_nodes, num_nodes)

        indptr, indices, order = _ranked_csr(edge_index.cpu().numpy(), num_nodes)
        arrays = _build(indptr, indices, order, num_hops, limit)
        return cls(*(torch.from_numpy(a) for a in arrays)).to(edge_index.device)

    @classmethod
    def from_data(cls, data: Data) -> EgoGraphs:
        """Read what :class:`EgoSubgraphs` stored on a ``Data`` or a ``Batch``."""
        names = {f.name: f"ego_{f.name}" for f in fields(cls)}
        missing = [key for key in names.values() if key not in data]
        if missing:
            raise ValueError(
                f"data has no {', '.join(missing)}: apply the transform EgoSubgraphs first"
            )
        return cls(**{name: data[key] for name, key in names.items()})

    @classmethod
    def cat(cls, egos: Iterable[EgoGraphs]) -> EgoGraphs:
        """Return the ego-graphs of the disjoint union of several graphs."""
        egos = list(egos)
        if not egos:
            raise ValueError("egos is empty: at least one EgoGraphs is needed")
        offset, index = 0, []
        for ego in egos:
            index.append(ego.index + offset)
            offset += ego.num_nodes
        rest = ((getattr(ego, f.name) for ego in egos) for f in fields(cls)[1:])
        return cls(torch.cat(index), *(torch.cat(tuple(tensors)) for tensors in rest))

    def to(self, device: torch.device | str) -> EgoGraphs:
        """Return the same ego-graphs on another device."""
        if torch.device(device) == self.index.device:
            return self
        return EgoGraphs(*(getattr(self, f.name).to(device) for f in fields(self)))

    @property
    def num_nodes(self) -> int:
        """Number of ego-graphs, one for each node: N."""
        return self.size.size(0)

    @property
    def num_members(self) -> int:
        """Number of members of all ego-graphs together: T."""
        return self.index.size(0)

    @cached_property
    def max_hop(self) -> int:
        """Largest hop distance that occurs."""
        return int(self.hop.max()) if self.num_members else 0

    @cached_property
    def ptr(self) -> Tensor:
        """(N + 1,) the members of ego-graph v are ``ptr[v]`` up to ``ptr[v + 1]``."""
        return torch.cat([self.size.new_zeros(1), self.size.cumsum(0)])

    @cached_property
    def center(self) -> Tensor:
        """(T,) the node whose ego-graph a member belongs to."""
        nodes = torch.arange(self.num_nodes, device=self.size.device)
        return nodes.repeat_interleave(self.size, output_size=self.num_members)

    @cached_property
    def edge_index(self) -> Tensor:
        """(2, S) edges of all ego-graphs, both directions, between rows of the member list."""
        rows = torch.arange(self.num_members, device=self.degree.device)
        row = rows.repeat_interleave(self.degree, output_size=self.neighbor.size(0))
        return torch.stack([row, self.neighbor + self.ptr[self.center[row]]])

    def __getitem__(self, node: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return one ego-graph: its nodes (n,), their hops (n,), its edge index (2, e)."""
        if not 0 <= node < self.num_nodes:
            raise IndexError(f"node is {node}, but there are {self.num_nodes} ego-graphs")
        start, stop = int(self.ptr[node]), int(self.ptr[node + 1])
        degree = self.degree[start:stop]
        first = int(self.degree[:start].sum())
        col = self.neighbor[first : first + int(degree.sum())]
        row = torch.arange(stop - start, device=col.device).repeat_interleave(degree)
        return self.index[start:stop], self.hop[start:stop], torch.stack([row, col])

    def __len__(self) -> int:
        return self.num_nodes

    def __repr__(self) -> str:
        return (
            f"EgoGraphs(num_nodes={self.num_nodes}, num_members={self.num_members}, "
            f"num_edges={self.neighbor.size(0)})"
        )


class EgoSubgraphs(BaseTransform):  # type: ignore[misc]
    r"""PyG transform that stores the ego-graphs of all nodes on a ``Data`` object.

    The five tensors of :class:`EgoGraphs` are stored as ``ego_index``, ``ego_size``, ``ego_hop``,
    ``ego_degree`` and ``ego_neighbor``. They need no collation rule beyond PyG's own (names with
    "index" are shifted by the number of nodes, everything else is concatenated), so every loader
    and data set class of PyG handles them. Get them back with :meth:`EgoGraphs.from_data`.

    Args:
        num_hops: radius of the ego-graphs.
        max_nodes: largest size of an ego-graph, the centre included; ``None`` for no limit.
    """

    def __init__(self, num_hops: int = 1, max_nodes: int | None = None) -> None:
        self.num_hops = check_integer("num_hops", num_hops, minimum=0)
        self.max_nodes = (
            None if max_nodes is None else check_integer("max_nodes", max_nodes, minimum=1)
        )

    def forward(self, data: Data) -> Data:
        """Add the five ``ego_*`` tensors."""
        if data.edge_index is None:
            raise ValueError("data.edge_index is missing: EgoSubgraphs needs an edge index")
        ego = EgoGraphs.from_edge_index(
            data.edge_index, data.num_nodes, self.num_hops, self.max_nodes
        )
        for f in fields(ego):
            data[f"ego_{f.name}"] = getattr(ego, f.name)
        return data

    def __repr__(self) -> str:
        return f"EgoSubgraphs(num_hops={self.num_hops}, max_nodes={self.max_nodes})"


def _ranked_csr(edge_index: IntArray, num_nodes: int) -> tuple[IntArray, IntArray, IntArray]:
    """Clean the graph and renumber its nodes by rank: larger degree first, then smaller id.

    Returns the CSR arrays over ranks, each row ascending, and the node id of every rank.
    """
    shape = (num_nodes, num_nodes)
    row, col = edge_index[:, edge_index[0] != edge_index[1]]
    both = np.concatenate([row, col]), np.concatenate([col, row])
    simple = sp.coo_array((np.ones(len(both[0]), dtype=np.int8), both), shape=shape).tocsr()
    degree = np.diff(simple.indptr)

    order = np.argsort(-degree, kind="stable").astype(np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(num_nodes)
    row = np.repeat(np.arange(num_nodes), degree)
    ones = np.ones(len(row), dtype=np.int8)
    ranked = sp.coo_array((ones, (rank[row], rank[simple.indices])), shape=shape).tocsr()
    ranked.sort_indices()
    return ranked.indptr.astype(np.int64), ranked.indices.astype(np.int64), order


def _build(
    indptr: IntArray, indices: IntArray, order: IntArray, num_hops: int, limit: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Count every ego-graph, then fill all of them into arrays of the exact size."""
    num_nodes = len(order)
    rank = np.empty_like(order)
    rank[order] = np.arange(num_nodes)
    graph = (rank, indptr, indices, num_hops, limit)

    size = np.zeros(num_nodes, dtype=np.int64)
    num_edges = np.zeros(num_nodes, dtype=np.int64)
    _in_threads(_count, num_nodes, *graph, size, num_edges)

    ptr = np.concatenate([[0], np.cumsum(size)])
    edge_ptr = np.concatenate([[0], np.cumsum(num_edges)])
    index, hop, degree = (np.empty(ptr[-1], dtype=np.int64) for _ in range(3))
    neighbor = np.empty(edge_ptr[-1], dtype=np.int64)
    _in_threads(_fill, num_nodes, *graph, order, ptr, edge_ptr, index, hop, degree, neighbor)
    return index, size, hop, degree, neighbor


def _in_threads(function: Any, num_nodes: int, *args: Any) -> None:
    """Run ``function(first, step, *args)`` so that all nodes are covered, node after node.

    Plain threads and code that releases the GIL: unlike OpenMP this survives a later fork, as in
    the workers of a DataLoader.
    """
    num_threads = max(1, min(torch.get_num_threads(), num_nodes // _NODES_PER_THREAD))
    if num_threads == 1:
        function(0, 1, *args)
        return
    with ThreadPoolExecutor(num_threads) as pool:
        for future in [pool.submit(function, t, num_threads, *args) for t in range(num_threads)]:
            future.result()


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _members(
    center: int,
    indptr: IntArray,
    indices: IntArray,
    num_hops: int,
    limit: int,
    position: IntArray,
    member: IntArray,
    hop: IntArray,
) -> int:
    """Breadth-first search from ``center``; returns how many members it found.

    All nodes are ranks here. ``position`` holds -1 everywhere, and the members' positions on
    return. Of a sorted row only the first ``room`` entries that are not yet nearer to the centre
    can be among the ``room`` best of this hop, so a hub is never read to its end.
    """
    member[0], hop[0], position[center] = center, 0, 0
    count, start = 1, 0
    for h in range(1, num_hops + 1):
        stop, room = count, limit - count
        for i in range(start, stop):
            seen = 0
            for e in range(indptr[member[i]], indptr[member[i] + 1]):
                if seen == room:
                    break
                node = indices[e]
                if position[node] < 0:
                    position[node] = count
                    member[count] = node
                    count += 1
                    seen += 1
                elif position[node] >= stop:
                    seen += 1
        member[stop:count].sort()
        for i in range(min(count, limit), count):
            position[member[i]] = -1
        count = min(count, limit)
        for i in range(stop, count):
            position[member[i]] = i
            hop[i] = h
        if count == stop:
            break
        start = stop
    return count


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _neighbors(
    node: int,
    indptr: IntArray,
    indices: IntArray,
    position: IntArray,
    member: IntArray,
    count: int,
    out: IntArray,
) -> int:
    """Write a member's neighbours to ``out`` as ascending positions; returns how many there are.

    A hub in a small ego-graph is not read to its end: its row is sorted, so each member is
    looked up in it instead.
    """
    found = 0
    start, stop = indptr[node], indptr[node + 1]
    if stop - start <= 8 * count:
        for e in range(start, stop):
            if position[indices[e]] >= 0:
                out[found] = position[indices[e]]
                found += 1
        out[:found].sort()
        return found
    row = indices[start:stop]
    for i in range(count):
        e = np.searchsorted(row, member[i])
        if e < len(row) and row[e] == member[i]:
            out[found] = i
            found += 1
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _workspace(num_nodes: int, limit: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return position (all -1), member, hop and neighbour buffers for one thread."""
    # A hop has at most `limit` candidates from each of at most `limit` frontier nodes.
    candidates = min(num_nodes, limit * (limit + 1))
    position = np.full(num_nodes, -1, dtype=np.int64)
    member = np.empty(candidates, dtype=np.int64)
    return position, member, np.empty(limit, dtype=np.int64), np.empty(limit, dtype=np.int64)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count(
    first: int,
    step: int,
    rank: IntArray,
    indptr: IntArray,
    indices: IntArray,
    num_hops: int,
    limit: int,
    size: IntArray,
    num_edges: IntArray,
) -> None:
    position, member, hop, buffer = _workspace(len(rank), limit)
    for v in range(first, len(rank), step):
        count = _members(rank[v], indptr, indices, num_hops, limit, position, member, hop)
        size[v] = count
        for i in range(count):
            num_edges[v] += _neighbors(member[i], indptr, indices, position, member, count, buffer)
        for i in range(count):
            position[member[i]] = -1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill(
    first: int,
    step: int,
    rank: IntArray,
    indptr: IntArray,
    indices: IntArray,
    num_hops: int,
    limit: int,
    order: IntArray,
    ptr: IntArray,
    edge_ptr: IntArray,
    index: IntArray,
    hop: IntArray,
    degree: IntArray,
    neighbor: IntArray,
) -> None:
    position, member, distance, buffer = _workspace(len(rank), limit)
    for v in range(first, len(rank), step):
        count = _members(rank[v], indptr, indices, num_hops, limit, position, member, distance)
        row, edge = ptr[v], edge_ptr[v]
        for i in range(count):
            found = _neighbors(member[i], indptr, indices, position, member, count, buffer)
            index[row + i] = order[member[i]]
            hop[row + i] = distance[i]
            degree[row + i] = found
            neighbor[edge : edge + found] = buffer[:found]
            edge += found
        for i in range(count):
            position[member[i]] = -1
