"""Return probabilities of random walks: how a node's surroundings close upon themselves."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn._compile import compiled

Array: TypeAlias = NDArray[Any]

# Few rings of molecules are longer than the longest walk.
RETURN_STEPS = tuple(range(2, 13))


def return_probabilities(edges: Tensor, degree: Tensor) -> Tensor:
    r"""Return the probability that a random walk from a node is back after 2 to 12 steps.

    With :math:`S = D^{-1/2} A D^{-1/2}`, whose powers have the same diagonals as those of
    :math:`D^{-1} A`, and :math:`s_k = S^k e_v`,

    .. math::
        (S^{2k})_{vv} = \langle s_k, s_k \rangle, \qquad
        (S^{2k+1})_{vv} = \langle s_k, s_{k+1} \rangle,

    so a walk is followed half its way, through the nodes that it can have reached.

    Args:
        edges: (2, E) both directions of every edge, once, sorted by the first node.
        degree: (N,) number of neighbours of every node.

    Returns:
        (N, 11) of float64; zeros for a node without neighbours.
    """
    indptr = np.concatenate([[0], np.cumsum(degree.numpy())])
    scale = 1 / np.sqrt(np.maximum(degree.numpy(), 1))
    found = np.zeros((len(degree), len(RETURN_STEPS)))
    _fill(indptr, edges[1].contiguous().numpy(), scale, found)
    return torch.from_numpy(found)


@compiled
def _fill(indptr: Array, neighbor: Array, scale: Array, found: Array) -> None:
    """Set the probabilities of every node; ``now`` and ``then`` are zero between two nodes."""
    num_nodes, num_steps = found.shape
    now, then = np.zeros(num_nodes), np.zeros(num_nodes)
    reached = np.empty(num_nodes, dtype=np.int64)
    known = np.zeros(num_nodes, dtype=np.bool_)
    for v in range(num_nodes):
        reached[0], known[v], now[v] = v, True, 1.0
        count = 1
        for k in range(num_steps):  # column 2k - 2 is a walk of 2k steps
            if k > 0:
                for i in range(count):
                    found[v, 2 * k - 2] += now[reached[i]] ** 2
            if 2 * k - 1 >= num_steps:
                break
            for i in range(count):  # those reached so far: the range does not grow with count
                a = reached[i]
                for e in range(indptr[a], indptr[a + 1]):
                    c = neighbor[e]
                    if not known[c]:
                        known[c] = True
                        reached[count] = c
                        count += 1
                    then[c] += now[a] * scale[a] * scale[c]
            for i in range(count):
                c = reached[i]
                if k > 0:
                    found[v, 2 * k - 1] += now[c] * then[c]
                now[c], then[c] = then[c], 0.0
        for i in range(count):
            now[reached[i]], known[reached[i]] = 0.0, False
