r"""Colours of the Weisfeiler-Lehman test: which surroundings of a node look exactly alike.

.. math::
    c_0(v) = \text{label or degree}, \qquad
    c_k(v) = (c_{k-1}(v), \{\!\{ c_{k-1}(u) : u \in N(v) \}\!\})

A colour is kept as a number of 64 bits that depends on nothing but names of labels and edges, so
that it is known again in any other set. Two of n colours share a number by chance alone, with a
probability of about :math:`n^2 / 2^{65}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kergnn.data.graphset import GraphSet

Array: TypeAlias = NDArray[Any]
Color: TypeAlias = tuple[int, int, str]  # its round, its number and what it looks like
# Positions of every node's labels (N, L) in the names of each column, -1 for none of them.
Labels: TypeAlias = tuple[Tensor, Sequence[Sequence[str]]]

NUM_ROUNDS = 2
MOST_COLORS = 512  # of a round; a column each
FEWEST_NODES = 20  # what fewer nodes of the training part have is no feature
_LONGEST_NAME = 60


def node_colors(graphs: GraphSet, labels: Labels | None, num_rounds: int = NUM_ROUNDS) -> Array:
    """Return the numbers of every node's colours c_0, c_1, ...: (num_rounds + 1, N) of uint64.

    Args:
        graphs: the graphs.
        labels: what they start from; the degree without any.
        num_rounds: how often colours are refined.
    """
    ptr, neighbor = _neighbors(graphs)
    rounds = [_start(graphs, labels)]
    for _ in range(num_rounds):
        color = rounds[-1]
        # A sum tells multisets of scattered numbers apart. It overflows, and that is no harm.
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_scattered(color)[neighbor])])
        around = total[ptr[1:]] - total[ptr[:-1]]
        # Scattered before it meets the node's own colour: the two must not change places.
        rounds.append(_scattered(_scattered(around) + color))
    return np.stack(rounds)


def frequent_colors(graphs: GraphSet, labels: Labels | None, nodes: Array) -> tuple[Color, ...]:
    """Return the colours that most of some nodes have, round after round."""
    found: list[Color] = []
    colors, names = node_colors(graphs, labels), _Names(graphs, labels)
    for k in range(1, NUM_ROUNDS + 1):
        numbers, first, count = np.unique(colors[k][nodes], return_index=True, return_counts=True)
        order = np.lexsort([numbers, -count])[:MOST_COLORS]
        for i in order[count[order] >= FEWEST_NODES]:
            name = names(colors, int(nodes[first[i]]), k)
            if len(name) > _LONGEST_NAME or any(name == known for _, _, known in found):
                name = f"{name[:_LONGEST_NAME]}... ({len(found) + 1})"
            found.append((k, int(numbers[i]), name))
    return tuple(found)


def color_features(graphs: GraphSet, labels: Labels | None, colors: tuple[Color, ...]) -> Array:
    """Return which of some colours every node has: (N, len(colors)) of zeros and ones."""
    made = np.zeros((graphs.num_nodes, len(colors)), dtype=np.float32)
    of_nodes = node_colors(graphs, labels)
    for k in range(1, NUM_ROUNDS + 1):
        columns = np.array([i for i, color in enumerate(colors) if color[0] == k], dtype=np.int64)
        if len(columns):
            numbers = np.array([colors[i][1] for i in columns], dtype=np.uint64)
            order = np.argsort(numbers)
            place = np.searchsorted(numbers[order], of_nodes[k]).clip(max=len(numbers) - 1)
            node = np.flatnonzero(numbers[order][place] == of_nodes[k])
            made[node, columns[order][place[node]]] = 1
    return made


class _Names:
    """Tells what a colour looks like, such as ``C(2xC,N)``: a C beside two C and an N."""

    def __init__(self, graphs: GraphSet, labels: Labels | None) -> None:
        self.ptr, self.neighbor = _neighbors(graphs)
        self.degree, self.labels = graphs.degree, labels

    def __call__(self, colors: Array, node: int, rounds: int) -> str:
        own = self._own(node)
        if rounds == 0:
            return own
        beside = self.neighbor[self.ptr[node] : self.ptr[node + 1]]
        _, first, count = np.unique(
            colors[rounds - 1][beside], return_index=True, return_counts=True
        )
        around = sorted(
            (self(colors, int(beside[i]), rounds - 1), int(n))
            for i, n in zip(first, count, strict=True)
        )
        return f"{own}({','.join(name if n == 1 else f'{n}x{name}' for name, n in around)})"

    def _own(self, node: int) -> str:
        if self.labels is None:
            return str(int(self.degree[node]))
        positions, names = self.labels
        return "/".join(
            column[i] for column, i in zip(names, positions[node].tolist(), strict=True)
        )


def _neighbors(graphs: GraphSet) -> tuple[Array, Array]:
    """Return where the neighbours of every node begin, and those of all nodes in a row."""
    ptr = np.concatenate([[0], np.cumsum(graphs.degree.numpy())])
    return ptr, graphs.simple_edges[1].numpy()


def _start(graphs: GraphSet, labels: Labels | None) -> Array:
    """Return a number for every node's labels, or its degree where there are none."""
    if labels is None:
        return _scattered(graphs.degree.numpy().astype(np.uint64))
    start = np.zeros(graphs.num_nodes, dtype=np.uint64)
    for names, column in zip(labels[1], labels[0].T.numpy(), strict=True):
        digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
        # The last one is for position -1.
        numbers = np.array([int.from_bytes(d, "little") for d in digests] + [0], dtype=np.uint64)
        start = _scattered(start + numbers[column])
    return start


def _scattered(numbers: Array) -> Array:
    """Scatter numbers of 64 bits, one to one (the finaliser of splitmix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scattered: Array = z ^ (z >> np.uint64(31))
    return scattered
