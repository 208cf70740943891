"""``rw``: the P-step random-walk kernel in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.kernels.ragged import gather, propagate, similarity, sum_members
from kergnn.kernels.registry import register_kernel


@register_kernel("rw")
def random_walk(
    x: Tensor, ego: EgoGraphs, adjacency: Tensor, attributes: Tensor, num_steps: int
) -> Tensor:
    r"""Compare walks by their two ends (equation 4 of the paper).

    .. math::
        K_p(G_v, H_i) = s^T (B_i^p \otimes A^p)\, s
        = \sum_{a,b} \left[ (X W_i^T) \odot (A^p X (B_i^p W_i)^T) \right]_{ab},
        \qquad s = \mathrm{vec}(X W_i^T)

    Args:
        x: (N, d) node features.
        ego: the ego-graphs.
        adjacency: (D, m, m) symmetric :math:`B_i`.
        attributes: (D, m, d) :math:`W_i`.
        num_steps: the longest walk P.

    Returns:
        (P + 1, N, D): every :math:`K_p(G_v, H_i)`.
    """
    U = [gather(similarity(x, attributes), ego)]
    for _ in range((num_steps + 1) // 2):
        U.append(torch.einsum("tia,iab->tib", propagate(U[-1], ego), adjacency))
    # K_{q+r} = <U_q, U_r> with U_q = A^q S B^q: both adjacencies are symmetric.
    pairs = [(U[p // 2], U[p - p // 2]) for p in range(num_steps + 1)]
    return torch.stack([sum_members((left * right).sum(-1), ego) for left, right in pairs])
