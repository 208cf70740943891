"""``drw``: the deep random-walk kernel, a trainable weight on every pair of nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.kernels.ragged import gather, propagate, similarity, sum_members
from kergnn.kernels.registry import register_kernel


@register_kernel("drw", parameters={"hop_weight": lambda m, num_hops: (num_hops + 1, m)})
def deep_random_walk(
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    *,
    hop_weight: Tensor,
) -> Tensor:
    r"""Weigh the base kernel of every pair of nodes.

    .. math::
        K_p(G_v, H_i) = \sum_{a,b} w_{i,\,\mathrm{hop}(a),\,b}
        \left[ (X W_i^T) \odot (A^p X (B_i^p W_i)^T) \right]_{ab}

    The weight of a pair (a, b) depends on the distance of a from v, not on the place of a in a
    list, so the order of the nodes does not matter. With all weights one this is ``rw``.

    Args:
        x: (N, d) node features.
        ego: the ego-graphs.
        adjacency: (D, m, m) symmetric :math:`B_i`.
        attributes: (D, m, d) :math:`W_i`.
        num_steps: the longest walk P.
        hop_weight: (D, H + 1, m) :math:`w`, for hops 0 to H.

    Returns:
        (P + 1, N, D): every :math:`K_p(G_v, H_i)`.
    """
    check_hops(ego, hop_weight)
    U = gather(similarity(x, attributes), ego)
    weighted = U * hop_weight.transpose(0, 1).index_select(0, ego.hop)
    K = [sum_members((weighted * U).sum(-1), ego)]
    for _ in range(num_steps):
        U = torch.einsum("tia,iab->tib", propagate(U, ego), adjacency)
        K.append(sum_members((weighted * U).sum(-1), ego))
    return torch.stack(K)


def check_hops(ego: EgoGraphs, hop_weight: Tensor) -> None:
    """Accept ego-graphs that reach no further than ``hop_weight`` (D, H + 1, m) has weights."""
    if ego.max_hop >= hop_weight.size(1):
        raise ValueError(
            f"ego reaches {ego.max_hop} hops, but hop_weight has weights for hops 0 to "
            f"{hop_weight.size(1) - 1} only: build layer and ego-graphs with the same num_hops"
        )
