"""What the fused engine needs to know of the ego-graphs, once for all layers and passes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kergnn.egobuilder import IntArray
from kergnn.egographs import EgoGraphs
from kergnn.engine.lanes import jit
from kergnn.engine.members import Array

# Nodes of a tile, where graphs are small enough: their rows should stay in the second-level cache.
TILE = 256


class Topology(NamedTuple):
    """The ego-graphs as small integers, and how to cut them into independent tiles.

    Tile t has the nodes ``tiles[t]`` up to ``tiles[t + 1]``, and no ego-graph has members in two
    tiles, so that tiles can be worked on at the same time: a batch of graphs is cut between
    graphs. The members of ego-graph v begin at ``ptr[v]``, their edges at ``edge_ptr[v]``;
    ``source`` holds the nodes that ``neighbor`` points to.
    """

    tiles: IntArray
    ptr: IntArray
    edge_ptr: IntArray
    node: Array
    hop: Array
    degree: Array
    neighbor: Array
    source: Array


def topology(ego: EgoGraphs) -> Topology:
    """Return the topology of the ego-graphs, kept with them like their cached properties."""
    known: Topology | None = ego.__dict__.get("_topology")
    if known is None:
        index, hop, degree, neighbor = (
            tensor.numpy().astype(np.int32)
            for tensor in (ego.index, ego.hop, ego.degree, ego.neighbor)
        )
        ptr = np.empty(ego.num_nodes + 1, dtype=np.int64)
        edge_ptr, tiles = np.empty_like(ptr), np.empty_like(ptr)
        source = np.empty_like(neighbor)
        num_tiles = _cut(ego.size.numpy(), index, degree, neighbor, ptr, edge_ptr, tiles, source)
        known = Topology(
            tiles[: num_tiles + 1], ptr, edge_ptr, index, hop, degree, neighbor, source
        )
        ego.__dict__["_topology"] = known
    return known


@jit  # type: ignore[untyped-decorator]
def _cut(
    size: IntArray,
    index: Array,
    degree: Array,
    neighbor: Array,
    ptr: IntArray,
    edge_ptr: IntArray,
    tiles: IntArray,
    source: Array,
) -> int:
    """Fill ptr, edge_ptr, tiles and source; returns the number of tiles."""
    num_nodes = size.size
    ptr[0], edge_ptr[0], tiles[0] = 0, 0, 0
    for v in range(num_nodes):
        ptr[v + 1], edge_ptr[v + 1] = ptr[v] + size[v], edge_ptr[v]
        for a in range(ptr[v], ptr[v + 1]):
            edge_ptr[v + 1] += degree[a]
        for e in range(edge_ptr[v], edge_ptr[v + 1]):
            source[e] = index[ptr[v] + neighbor[e]]
    # lowest[v]: the smallest node in the ego-graphs of v and all nodes after it.
    lowest = np.empty(num_nodes + 1, dtype=np.int64)
    lowest[num_nodes] = num_nodes
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
    return num_tiles
