r"""Graph kernels between ego-graphs and filters, as pure functions of tensors.

Every kernel has the signature ::

    kernel(x, ego, adjacency, attributes, num_steps, **parameters) -> (P + 1, N, D)

with ``x`` (N, d) the node features, ``ego`` the ego-graphs :math:`G_v`, ``adjacency`` (D, m, m)
and ``attributes`` (D, m, d) those of the filters :math:`H_i`, and returns every
:math:`K_p(G_v, H_i)`. Axes: N nodes, T members of ego-graphs, D filters, m filter nodes, d
features, P steps.
"""

from kergnn.kernels.deep_random_walk import deep_random_walk
from kergnn.kernels.gcn import gcn
from kergnn.kernels.random_walk import random_walk
from kergnn.kernels.registry import Kernel, get_kernel, kernel_names, register_kernel
from kergnn.kernels.step_random_walk import step_random_walk

__all__ = [
    "Kernel",
    "deep_random_walk",
    "gcn",
    "get_kernel",
    "kernel_names",
    "random_walk",
    "register_kernel",
    "step_random_walk",
]
