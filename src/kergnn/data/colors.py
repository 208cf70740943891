r"""Colours of the Weisfeiler-Lehman test: which surroundings of a node look exactly alike.

.. math::
    c_0(v) = \text{label or degree}, \qquad
    c_k(v) = (c_{k-1}(v), \{\!\{ c_{k-1}(u) : u \in N(v) \}\!\})

A colour is kept as a number of 64 bits that depends on nothing but names of labels and edges, so
that it is known again in any other set. Two colours share a number with a probability of about
:math:`n^2 / 2^{65}` for n of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kergnn.data.graphset import GraphSet

Array: TypeAlias = NDArray[Any]
Color: TypeAlias = tuple[int, int, str]  # its round, its number and what it looks like

NUM_ROUNDS = 2
MOST_COLORS = 512  # of a round; a column each
FEWEST_NODES = 20  # what fewer nodes of the training part have is no feature
_LONGEST_NAME = 60


def node_colors(graphs: GraphSet) -> Array:
    """Return the number of every node's colour after each round: (NUM_ROUNDS, N) of uint64."""
    ptr, neighbor = _neighbors(graphs)
    color, rounds = _start(graphs), []
    for _ in range(NUM_ROUNDS):
        # A sum over the multiset of neighbours; numbers of 64 bits overflow, and that is no harm.
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(color)[neighbor])])
        color = _mixed(_mixed(color) * np.uint64(3) + total[ptr[1:]] - total[ptr[:-1]])
        rounds.append(color)
    return np.stack(rounds)


def frequent_colors(graphs: GraphSet, nodes: Array) -> tuple[Color, ...]:
    """Return the colours that most of some nodes have, round after round."""
    found: list[Color] = []
    ptr, neighbor = _neighbors(graphs)
    for k, of_nodes in enumerate(node_colors(graphs)[:, nodes], start=1):
        numbers, first, count = np.unique(of_nodes, return_index=True, return_counts=True)
        order = np.lexsort([numbers, -count])[:MOST_COLORS]
        for i in order[count[order] >= FEWEST_NODES]:
            name = _name(graphs, ptr, neighbor, int(nodes[first[i]]), k)
            if len(name) > _LONGEST_NAME:
                name = f"{name[:_LONGEST_NAME]}... ({len(found) + 1})"
            found.append((k, int(numbers[i]), name))
    return tuple(found)


def color_features(graphs: GraphSet, colors: tuple[Color, ...]) -> Array:
    """Return which of some colours every node has: (N, len(colors)) of zeros and ones."""
    made = np.zeros((graphs.num_nodes, len(colors)), dtype=np.float32)
    for k, of_nodes in enumerate(node_colors(graphs), start=1):
        columns = np.array([i for i, color in enumerate(colors) if color[0] == k], dtype=np.int64)
        numbers = np.array([colors[i][1] for i in columns], dtype=np.uint64)
        order = np.argsort(numbers)
        place = np.searchsorted(numbers[order], of_nodes).clip(max=max(len(numbers) - 1, 0))
        if len(numbers):
            node = np.flatnonzero(numbers[order][place] == of_nodes)
            made[node, columns[order][place[node]]] = 1
    return made


def _start(graphs: GraphSet) -> Array:
    """Return a number for every node's labels, or its degree where there are none."""
    if graphs.labels is None:
        return _mixed(graphs.degree.numpy().astype(np.uint64))
    start = np.zeros(graphs.num_nodes, dtype=np.uint64)
    for names, column in zip(graphs.label_names, graphs.labels.T.numpy(), strict=True):
        digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
        numbers = np.array([int.from_bytes(d, "little") for d in digests], dtype=np.uint64)
        start = _mixed(start * np.uint64(3) + numbers[column])
    return start


def _mixed(numbers: Array) -> Array:
    """Scatter numbers of 64 bits, one to one (the finaliser of splitmix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def _neighbors(graphs: GraphSet) -> tuple[Array, Array]:
    """Return the neighbours of all nodes in a row, and where those of each begin."""
    ptr = np.concatenate([[0], np.cumsum(graphs.degree.numpy())])
    return ptr, graphs.simple_edges[1].numpy()


def _name(graphs: GraphSet, ptr: Array, neighbor: Array, node: int, rounds: int) -> str:
    """Return what a colour looks like, such as ``C(2xC,N)``: a C beside two C and an N."""
    if graphs.labels is None:
        own = str(int(graphs.degree[node]))
    else:
        row = graphs.labels[node].tolist()
        own = "/".join(n[i] for n, i in zip(graphs.label_names, row, strict=True))
    if rounds == 0:
        return own
    beside = neighbor[ptr[node] : ptr[node + 1]]
    counts = Counter(_name(graphs, ptr, neighbor, int(u), rounds - 1) for u in beside)
    names = (name if n == 1 else f"{n}x{name}" for name, n in sorted(counts.items()))
    return f"{own}({','.join(names)})"
