"""``wl``: the Weisfeiler-Lehman subtree kernel."""

from __future__ import annotations

import numpy as np
from grakel.kernels import VertexHistogram, WeisfeilerLehman
from numpy.typing import NDArray
from torch import Tensor

from kergnn._checks import check_integer
from kergnn.baselines.simple_graphs import Progress, cosine, grakel_gram
from kergnn.data import GraphSet


def gram(
    graphs: GraphSet,
    x: Tensor,
    num_iterations: int = 5,
    normalize: bool = True,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    r"""Shervashidze et al., "Weisfeiler-Lehman Graph Kernels", JMLR 2011, by GraKeL.

    .. math::
        c_0(v) = \mathrm{label}(v), \quad
        c_{i+1}(v) = \mathrm{id}\big(c_i(v), \{\!\{c_i(u) : u \in N(v)\}\!\}\big), \qquad
        K(G, G') = \sum_{i=0}^{h} \sum_{v \in G} \sum_{v' \in G'} [c_i(v) = c_i(v')]

    Args:
        graphs: the graphs.
        x: (N, d) node features; nodes have the same label where their rows are the same.
        num_iterations: number of refinements h.
        normalize: whether K(G, G) is scaled to one.
        progress: called with the work done and the work there is.

    Returns:
        (G, G)
    """
    num_iterations = check_integer("num_iterations", num_iterations, minimum=1)
    kernel = WeisfeilerLehman(n_iter=num_iterations, base_graph_kernel=VertexHistogram)
    K = grakel_gram(kernel, graphs, x, progress)
    return cosine(K) if normalize else K
