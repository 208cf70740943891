"""``pk``: the propagation kernel."""

from __future__ import annotations

import numpy as np
from grakel.kernels import Propagation
from numpy.typing import NDArray
from torch import Tensor

from kergnn._checks import check_integer
from kergnn.baselines.simple_graphs import Progress, cosine, grakel_gram
from kergnn.data import GraphSet


def gram(
    graphs: GraphSet,
    x: Tensor,
    num_iterations: int = 5,
    bin_width: float = 0.01,
    normalize: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    r"""Neumann et al., "Propagation Kernels: Efficient Graph Kernels from Propagated Information",
    Machine Learning 2016, by GraKeL.

    .. math::
        P_0 = \text{one-hot labels}, \quad P_{t+1} = D^{-1} A P_t, \qquad
        K(G, G') = \sum_{t=0}^{T} \sum_{v \in G} \sum_{v' \in G'} [h_t(P_t(v)) = h_t(P_t(v'))]

    with :math:`h_t` a random hash that keeps distributions close in total variation together.

    Args:
        graphs: the graphs.
        x: (N, d) node features; nodes have the same label where their rows are the same.
        num_iterations: number of propagations T.
        bin_width: width of the bins of the hash.
        normalize: whether K(G, G) is scaled to one.
        seed: seed of the hash.
        progress: called with the work done and the work there is.

    Returns:
        (G, G)
    """
    num_iterations = check_integer("num_iterations", num_iterations, minimum=1)
    # GraKeL counts the labels before the first propagation too.
    kernel = Propagation(t_max=num_iterations + 1, w=bin_width, M="TV", random_state=seed)
    K = grakel_gram(kernel, graphs, x, progress)
    return cosine(K) if normalize else K
