"""Building ego-graphs in compiled code, in time linear in the size of the result.

Nodes are renumbered by rank first (larger degree, then smaller id), so that every row of the
adjacency is sorted as the members of a hop are to be: a hub is read only as far as it matters.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from kergnn._compile import Function, compiled

IntArray: TypeAlias = NDArray[np.int64]

# Below this many nodes a second thread costs more than it saves.
_NODES_PER_THREAD = 8192


def not_traced(function: Function) -> Function:
    """Let ``torch.compile`` call a function as it is: its code is compiled already."""
    plain: Function = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
    return plain


@not_traced
def build(
    edge_index: IntArray, num_nodes: int, num_hops: int, limit: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Count every ego-graph, then fill all of them into arrays of the exact size.

    Args:
        edge_index: (2, E) edges, checked but not cleaned.
        num_nodes: number of nodes N.
        num_hops: radius of the ego-graphs.
        limit: largest size of an ego-graph, at most N.

    Returns:
        index, size, hop, degree, neighbor; see :class:`kergnn.EgoGraphs`.
    """
    indptr, indices, order = _ranked_csr(edge_index, num_nodes)
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


@compiled
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


@compiled
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


@compiled
def _workspace(num_nodes: int, limit: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return position (all -1), member, hop and neighbour buffers for one thread."""
    # A hop has at most `limit` candidates from each of at most `limit` frontier nodes.
    candidates = min(num_nodes, limit * (limit + 1))
    position = np.full(num_nodes, -1, dtype=np.int64)
    member = np.empty(candidates, dtype=np.int64)
    return position, member, np.empty(limit, dtype=np.int64), np.empty(limit, dtype=np.int64)


@compiled
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


@compiled
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
