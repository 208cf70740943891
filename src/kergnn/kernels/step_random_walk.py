"""``rw-step``: the random-walk kernel by recursion, nodes matched at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.kernels.ragged import gather, propagate, similarity, sum_members
from kergnn.kernels.registry import register_kernel


@register_kernel("rw-step")
def step_random_walk(
    x: Tensor, ego: EgoGraphs, adjacency: Tensor, attributes: Tensor, num_steps: int
) -> Tensor:
    r"""Compare walks node by node (the recursive base kernel of the paper).

    .. math::
        k^0(a, b) = \langle x_a, w_b \rangle, \qquad
        k^p(a, b) = \langle x_a, w_b \rangle \sum_{a' \in N(a)} \sum_{b'} B_{bb'}\, k^{p-1}(a', b'),
        \qquad K_p = \sum_{a,b} k^p(a, b)

    A walk of p steps multiplies p + 1 similarities, where ``rw`` multiplies only those of its two
    ends. The two agree at p = 1; at p = 0 ``rw`` squares the similarity. Products of many
    similarities grow or vanish quickly unless those are of order one.

    Arguments and result are those of :func:`kergnn.kernels.random_walk`.
    """
    S = gather(similarity(x, attributes), ego)
    U = S
    K = [sum_members(U.sum(-1), ego)]
    for _ in range(num_steps):
        U = S * torch.einsum("tia,iab->tib", propagate(U, ego), adjacency)
        K.append(sum_members(U.sum(-1), ego))
    return torch.stack(K)
