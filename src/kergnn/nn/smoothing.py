"""Smoothing of the nodes' logits over their neighbourhoods."""

from __future__ import annotations

from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.engine import normalized_sum
from kergnn.kernels import ragged

NUM_SMOOTHING_STEPS = 10


def smoothed(
    h: Tensor,
    ego: EgoGraphs,
    restart: float,
    member: Tensor | None = None,
    size: Tensor | None = None,
    engine: str = "auto",
) -> Tensor:
    r"""Return the nodes' logits, smoothed by personalised PageRank.

    .. math::
        Z_0 = H, \qquad
        Z_{k+1}(v) = (1 - r) \sum_{a \in G_v} \frac{Z_k(a)}{\sqrt{|G_v|\,|G_a|}} + r H(v)

    ten times. For ego-graphs of one hop without truncation this is what APPNP does with the output
    of an MLP (Gasteiger et al., ICLR 2019).

    Args:
        h: (N, C) the logits H.
        ego: the ego-graphs.
        restart: probability r of returning to the node itself; with 1 nothing is smoothed.
        member, size: see :func:`kergnn.kernels.ragged.normalized_sum`.
        engine: see :func:`kergnn.engine.evaluate`; with member or size it is torch.
    """
    weighted, z = member is not None or size is not None, h
    for _ in range(NUM_SMOOTHING_STEPS):
        if weighted:
            total = ragged.normalized_sum(z, ego, member, size)
        else:
            total = normalized_sum(z, ego, engine)
        z = (1 - restart) * total + restart * h
    return z
