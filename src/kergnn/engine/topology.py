"""What the fused engine needs to know of the ego-graphs, once for all layers and passes."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kergnn._compile import compiled
from kergnn.egobuilder import IntArray
from kergnn.egographs import EgoGraphs

Array: TypeAlias = NDArray[Any]

# Nodes of a tile, where graphs are small enough: their rows should stay in the second-level cache.
TILE = 128


class Topology(NamedTuple):
    """The ego-graphs as small integers, and how to cut them into independent tiles.

    Tile t has the nodes ``tiles[t]`` up to ``tiles[t + 1]``, and no ego-graph has members in two
    tiles, so that tiles can be worked on at the same time: a batch of graphs is cut between
    graphs. The members of ego-graph v begin at ``ptr[v]``, their links at ``link_ptr[v]``.

    The links of a member, as positions within the ego-graph, are its neighbours where ``links``
    counts them. In an ego-graph with ``dense`` set, members with many neighbours list their
    strangers instead, the members that they are not adjacent to; ``links`` is then -1 less the
    number of these.
    """

    tiles: IntArray
    ptr: IntArray
    link_ptr: IntArray
    dense: Array
    node: Array
    hop: Array
    links: Array
    link: Array


def topology(ego: EgoGraphs) -> Topology:
    """Return the topology of the ego-graphs, kept with them like their cached properties."""
    known: Topology | None = ego.__dict__.get("_topology")
    if known is None:
        arrays = (ego.index, ego.size, ego.hop, ego.degree, ego.neighbor)
        known = Topology(*_build(*(tensor.numpy() for tensor in arrays)))
        ego.__dict__["_topology"] = known
    return known


@compiled
def _build(
    index: IntArray, size: IntArray, hop: IntArray, degree: IntArray, neighbor: IntArray
) -> tuple[Array, ...]:
    """Return the arrays of the topology in their order."""
    num_nodes, num_members = size.size, index.size
    ptr, link_ptr = np.zeros(num_nodes + 1, np.int64), np.zeros(num_nodes + 1, np.int64)
    dense = np.zeros(num_nodes, np.uint8)
    links, link = np.empty(num_members, np.int32), np.empty(neighbor.size, np.int32)
    edge = 0
    for v in range(num_nodes):
        start, n = ptr[v], size[v]
        ptr[v + 1] = start + n
        saved = 0
        for a in range(start, start + n):
            saved += max(2 * degree[a] - n, 0)
        dense[v] = saved > n
        to = link_ptr[v]
        for a in range(start, start + n):
            stop = edge + degree[a]
            if dense[v] and 2 * degree[a] > n:
                to = _list_strangers(neighbor, edge, stop, a - start, n, link, to)
                links[a] = degree[a] - n
            else:
                for e in range(edge, stop):
                    link[to] = neighbor[e]
                    to += 1
                links[a] = degree[a]
            edge = stop
        link_ptr[v + 1] = to
    tiles = _cut(ptr, index)
    node, hops = index.astype(np.int32), hop.astype(np.int32)
    return tiles, ptr, link_ptr, dense, node, hops, links, link[: link_ptr[num_nodes]].copy()


@compiled
def _list_strangers(
    neighbor: IntArray, edge: int, stop: int, own: int, n: int, link: Array, to: int
) -> int:
    """Write down the members that are neither ``own`` nor among its ascending neighbours."""
    for other in range(n):
        if edge < stop and neighbor[edge] == other:
            edge += 1
        elif other != own:
            link[to] = other
            to += 1
    return to


@compiled
def _cut(ptr: IntArray, index: IntArray) -> IntArray:
    """Return the first node of every tile, and the number of nodes."""
    num_nodes = ptr.size - 1
    tiles = np.zeros(num_nodes + 1, np.int64)
    # lowest[v]: the smallest node in the ego-graphs of v and all nodes after it.
    lowest = np.full(num_nodes + 1, num_nodes)
    for v in range(num_nodes - 1, -1, -1):
        lowest[v] = lowest[v + 1]
        for a in range(ptr[v], ptr[v + 1]):
            lowest[v] = min(lowest[v], index[a])
    num_tiles, highest = 0, 0
    for v in range(num_nodes):
        for a in range(ptr[v], ptr[v + 1]):
            highest = max(highest, index[a])
        stop = v + 1
        closed = highest < stop and lowest[stop] >= stop
        if stop == num_nodes or (closed and stop - tiles[num_tiles] >= TILE):
            num_tiles += 1
            tiles[num_tiles] = stop
    return tiles[: num_tiles + 1].copy()


@compiled
def cut(
    whole: Topology, ptr: IntArray, which: IntArray, x: Array
) -> tuple[tuple[Array, ...], Array, IntArray]:
    """Cut graphs out of the union of a whole set: all that they hold lies in ranges.

    Args:
        whole: the topology of the union.
        ptr: graph g has the nodes ``ptr[g]`` up to ``ptr[g + 1]``.
        which: the graphs.
        x: (N, d) features.

    Returns:
        the arrays of the graphs' topology in their order, their features, the graph of every node
    """
    num_nodes, num_members, num_links = 0, 0, 0
    for g in which:
        num_nodes += ptr[g + 1] - ptr[g]
        num_members += whole.ptr[ptr[g + 1]] - whole.ptr[ptr[g]]
        num_links += whole.link_ptr[ptr[g + 1]] - whole.link_ptr[ptr[g]]
    tiles = np.zeros(which.size + 1, np.int64)
    new_ptr, link_ptr = np.zeros(num_nodes + 1, np.int64), np.zeros(num_nodes + 1, np.int64)
    dense, graph = np.empty(num_nodes, np.uint8), np.empty(num_nodes, np.int64)
    node, hop = np.empty(num_members, np.int32), np.empty(num_members, np.int32)
    links, link = np.empty(num_members, np.int32), np.empty(num_links, np.int32)
    features = np.empty((num_nodes, x.shape[1]), x.dtype)
    v, a, e, num_tiles = 0, 0, 0, 0
    for i in range(which.size):
        lo, hi = ptr[which[i]], ptr[which[i] + 1]
        first, last = whole.ptr[lo], whole.ptr[hi]
        first_link, last_link = whole.link_ptr[lo], whole.link_ptr[hi]
        for u in range(hi - lo):
            new_ptr[v + u + 1] = whole.ptr[lo + u + 1] - first + a
            link_ptr[v + u + 1] = whole.link_ptr[lo + u + 1] - first_link + e
        graph[v : v + hi - lo] = i
        dense[v : v + hi - lo] = whole.dense[lo:hi]
        features[v : v + hi - lo] = x[lo:hi]
        for b in range(last - first):
            node[a + b] = whole.node[first + b] + (v - lo)
        hop[a : a + last - first] = whole.hop[first:last]
        links[a : a + last - first] = whole.links[first:last]
        link[e : e + last_link - first_link] = whole.link[first_link:last_link]
        v, a, e = v + hi - lo, a + last - first, e + last_link - first_link
        if v == num_nodes or v - tiles[num_tiles] >= TILE:
            num_tiles += v > tiles[num_tiles]
            tiles[num_tiles] = v
    arrays = (tiles[: num_tiles + 1].copy(), new_ptr, link_ptr, dense, node, hop, links, link)
    return arrays, features, graph
