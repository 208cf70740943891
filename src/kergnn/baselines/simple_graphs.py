"""A set of graphs as kernels take it: undirected, simple, with one label a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn.data import GraphSet

# Called with the work that is done and the work there is.
Progress: TypeAlias = Callable[[int, int], None]


def row_labels(x: Tensor) -> Tensor:
    """Return one label (N,) for every different row of the features (N, d).

    Larger rows come first, so that one-hot rows get their labels back.
    """
    inverse = np.unique(-x.numpy(), axis=0, return_inverse=True)[1]
    return torch.from_numpy(inverse.reshape(-1))


def grakel_gram(
    kernel: Any, graphs: GraphSet, x: Tensor, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Return the Gram matrix (G, G) of a kernel of GraKeL on nodes labelled by their features.

    A graph without nodes, which GraKeL refuses, has the kernel value zero with all others.

    Args:
        kernel: a kernel object of GraKeL.
        graphs: the graphs.
        x: (N, d) node features; nodes have the same label where their rows are the same.
        progress: called once, when all is done.
    """
    labels, ptr = row_labels(x).tolist(), graphs.ptr.tolist()
    edges: list[dict[int, dict[int, float]]] = [
        {v: {} for v in range(size)} for size in graphs.size.tolist()
    ]
    graph_of = graphs.graph_of.tolist()
    for u, v in graphs.simple_edges.T.tolist():
        g = graph_of[u]
        edges[g][u - ptr[g]][v - ptr[g]] = 1.0
    filled = [g for g in range(graphs.num_graphs) if edges[g]]
    made = [[edges[g], dict(enumerate(labels[ptr[g] : ptr[g + 1]])), {}] for g in filled]
    K = np.zeros((graphs.num_graphs, graphs.num_graphs))
    K[np.ix_(filled, filled)] = kernel.fit_transform(made)
    if progress is not None:
        progress(graphs.num_graphs, graphs.num_graphs)
    return K


def cosine(K: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return :math:`K_{ij} / \sqrt{K_{ii} K_{jj}}`, zero where an object is zero itself."""
    norm = np.sqrt(np.diagonal(K))
    inverse = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    scaled: NDArray[np.float64] = K * np.outer(inverse, inverse)
    return scaled
