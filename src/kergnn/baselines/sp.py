"""``sp``: the shortest-path kernel."""

from __future__ import annotations

import numpy as np
from grakel.kernels import ShortestPath
from numpy.typing import NDArray
from torch import Tensor

from kergnn.baselines.simple_graphs import Progress, cosine, grakel_gram
from kergnn.data import GraphSet


def gram(
    graphs: GraphSet,
    x: Tensor,
    with_labels: bool = True,
    normalize: bool = True,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    r"""Borgwardt and Kriegel, "Shortest-Path Kernels on Graphs", ICDM 2005, by GraKeL.

    .. math::
        K(G, G') = \sum_{u \neq v \in G} \sum_{u' \neq v' \in G'}
        [d(u, v) = d(u', v') < \infty]\, [l(u) = l(u')]\, [l(v) = l(v')]

    Args:
        graphs: the graphs.
        x: (N, d) node features; nodes have the same label where their rows are the same.
        with_labels: whether the labels of the ends must agree.
        normalize: whether K(G, G) is scaled to one.
        progress: called with the work done and the work there is.

    Returns:
        (G, G)
    """
    K = grakel_gram(ShortestPath(with_labels=with_labels), graphs, x, progress)
    return cosine(K) if normalize else K
