"""The subtrees that nodes are the roots of, as words of a vocabulary.

What surrounds a node, unfolded to depth k, is its colour after k rounds of the Weisfeiler-Lehman
test (:mod:`kergnn.data.colors`). There are tens of thousands of them in a set of molecules, most of
them rare, so a column for each is out of the question: a node has one word for each depth.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from kergnn.data.colors import Array, Labels, node_colors
from kergnn.data.graphset import GraphSet

# The known subtrees of depth 1, 2, ..., by their colours, in ascending order.
Subtrees: TypeAlias = tuple[tuple[int, ...], ...]

DEPTH = 5
FEWEST_GRAPHS = 2  # what a single graph of the training part has cannot tell classes apart


def shared_subtrees(graphs: GraphSet, labels: Labels | None, nodes: Array) -> Subtrees:
    """Return the subtrees of some nodes that several graphs have; or, of one graph, several nodes.

    Args:
        graphs: the graphs.
        labels: what subtrees are made of; degrees without any.
        nodes: the nodes, each once.
    """
    owner = graphs.graph_of.numpy()[nodes] if graphs.num_graphs > 1 else nodes
    known = []
    for colors in node_colors(graphs, labels, DEPTH)[1:]:
        numbers, word = np.unique(colors[nodes], return_inverse=True)
        pairs = np.unique(np.stack([word, owner]), axis=1)
        count = np.bincount(pairs[0], minlength=len(numbers))
        known.append(tuple(numbers[count >= FEWEST_GRAPHS].tolist()))
    return tuple(known)


def subtree_words(graphs: GraphSet, labels: Labels | None, known: Subtrees) -> Array:
    """Return every node's words (N, DEPTH): from 1, or 0 for a subtree that is not known."""
    words = np.zeros((graphs.num_nodes, len(known)), dtype=np.float32)
    colors = node_colors(graphs, labels, len(known))[1:]
    for k, numbers in enumerate(known):
        if numbers:
            known_numbers = np.array(numbers, dtype=np.uint64)
            place = np.searchsorted(known_numbers, colors[k]).clip(max=len(numbers) - 1)
            words[:, k] = np.where(known_numbers[place] == colors[k], place + 1, 0)
    return words
