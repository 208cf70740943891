r"""Normalisation of kernel values, see :class:`kergnn.KerGNNConv`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

NORMALIZATIONS = (None, "size", "root", "log")


def normalize_values(K: Tensor, size: Tensor, filter_size: int, normalize: str | None) -> Tensor:
    r"""Return the normalised :math:`K_p`: with :math:`q = K / (|G_v|\, m)` and
    :math:`r = \sqrt{|q| + 0.01}`, either q, :math:`\pm(r - 0.1)` or :math:`\pm\log_2(r + 0.9)`,
    where the sign is that of q.

    Args:
        K: (P + 1, N, D) kernel values.
        size: (N,) sizes of the ego-graphs.
        filter_size: number of nodes m of a filter.
        normalize: ``None``, ``"size"``, ``"root"`` or ``"log"``.
    """
    if normalize is None:
        return K
    scale = (size.to(K.dtype) * filter_size).reciprocal_().unsqueeze(-1)
    if normalize == "size":
        return K * scale
    result: Tensor = _Compress.apply(K, scale, normalize == "log")  # type: ignore[no-untyped-call]
    return result


class _Compress(torch.autograd.Function):
    r"""Root or logarithm, in as few passes over memory as possible.

    Both are smooth and odd; :math:`r` is all that the derivative needs:

    .. math::
        \frac{d(r - 0.1)}{dq} = \frac{1}{2 r}, \qquad
        \frac{d\log_2(r + 0.9)}{dq} = \frac{1}{2 r\, (r + 0.9) \ln 2} .
    """

    @staticmethod
    def forward(ctx: Any, K: Tensor, scale: Tensor, log: bool) -> Tensor:
        q = K * scale
        r = q.abs().add_(0.01).sqrt_()
        ctx.log = log
        ctx.save_for_backward(r, scale)
        return ((r + 0.9).log2_() if log else r - 0.1).copysign_(q)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        r, scale = ctx.saved_tensors
        slope = (r + 0.9).mul_(r) if ctx.log else r
        half = scale * (0.5 / math.log(2) if ctx.log else 0.5)
        return (gradient / slope).mul_(half), None, None
