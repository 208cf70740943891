r"""The fused engine: kernels in compiled code, with their derivatives written by hand.

The similarities :math:`Z = X W^T` are one matrix product of torch; compiled code turns them into
all :math:`K_p` (see :mod:`kergnn.engine.walks` and :mod:`kergnn.engine.steps`). Filters are taken
in blocks of ``LANES``, lane after lane, filled up with filters of zeros; the number m of filter
nodes is filled up to an even one. Nothing larger than Z is ever stored.

Work is cut into tiles of nodes and blocks of filters, and threads take such units as they come. A
unit reads and writes numbers of its own only, and sums over tiles are taken in the order of tiles:
results do not depend on which thread did what. They are the same bit for bit from call to call and
for any number of threads (those of torch's matrix products need not be the latter).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from kergnn.egographs import EgoGraphs
from kergnn.engine import short, steps, threads, walks
from kergnn.engine.lanes import LANES
from kergnn.engine.topology import topology
from kergnn.kernels.deep_random_walk import check_hops


def evaluate(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    hop_weight: Tensor | None = None,
) -> Tensor:
    """Return every K_p of ``"rw"``, ``"rw-step"`` or ``"drw"``: (P + 1, N, D)."""
    num_filters, m, _ = attributes.shape
    _check(x, ego, adjacency, attributes)
    if hop_weight is not None:
        check_hops(ego, hop_weight)
    else:
        hop_weight = x.new_zeros(num_filters, 1, m)
    odd = m % 2
    W = _blocks(attributes, (0, 0, 0, odd)).transpose(1, 2)  # (blocks, m, LANES, d)
    B = _blocks(adjacency, (0, odd, 0, odd)).movedim(1, 3)  # (blocks, m, m, LANES)
    weight = _blocks(hop_weight, (0, odd)).movedim(1, 3)  # (blocks, H + 1, m, LANES)
    Z = x @ W.flatten(0, 2).T  # (N, blocks * m * LANES)
    K: Tensor = _Fused.apply(kernel, ego, num_steps, Z, B, weight)  # type: ignore[no-untyped-call]
    return K[..., :num_filters]


def _check(x: Tensor, ego: EgoGraphs, adjacency: Tensor, attributes: Tensor) -> None:
    """Refuse what compiled code without bounds checks must never see."""
    num_filters, m, d = attributes.shape
    if x.shape != (ego.num_nodes, d):
        raise ValueError(
            f"x has shape {tuple(x.shape)}: it must be (N, d) = ({ego.num_nodes}, {d})"
        )
    if adjacency.shape != (num_filters, m, m):
        raise ValueError(
            f"adjacency has shape {tuple(adjacency.shape)}: it must be (D, m, m) = "
            f"({num_filters}, {m}, {m})"
        )
    if not x.dtype == adjacency.dtype == attributes.dtype:
        raise ValueError(
            f"x, adjacency and attributes are {x.dtype}, {adjacency.dtype} and "
            f"{attributes.dtype}: they must have one type"
        )


def _blocks(tensor: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Cut filters into blocks and fill up: (D, ...) -> (blocks, LANES, ...)."""
    missing = -tensor.size(0) % LANES
    if missing or any(padding):
        leading = (0, 0) * (tensor.dim() - 1 - len(padding) // 2)
        tensor = pad(tensor, (*padding, *leading, 0, missing))
    return tensor.reshape(tensor.size(0) // LANES, LANES, *tensor.shape[1:])


class _Fused(torch.autograd.Function):
    """(Z, B, weight) -> K (P + 1, N, blocks * LANES), by the compiled passes of a kernel."""

    @staticmethod
    def forward(
        ctx: Any, kernel: str, ego: EgoGraphs, num_steps: int, Z: Tensor, B: Tensor, weight: Tensor
    ) -> Tensor:
        ctx.kernel, ctx.ego, ctx.num_steps = kernel, ego, num_steps
        ctx.save_for_backward(Z, B, weight)
        K = Z.new_zeros(num_steps + 1, ego.num_nodes, B.size(0) * LANES)
        _run(kernel, 0, ego, num_steps, Z, B, weight, K)
        return K

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_K: Tensor) -> tuple[Tensor | None, ...]:
        Z, B, weight = ctx.saved_tensors
        num_tiles = topology(ctx.ego).tiles.size - 1
        grad_Z = torch.empty_like(Z, memory_format=torch.contiguous_format)
        grad_B, grad_weight = (t.new_zeros(num_tiles, *t.shape) for t in (B, weight))
        gradients = (grad_K.contiguous(), grad_Z.view(-1), grad_B, grad_weight)
        _run(ctx.kernel, 1, ctx.ego, ctx.num_steps, Z, B, weight, *gradients)
        return None, None, None, grad_Z, grad_B.sum(0), grad_weight.sum(0)


def _run(
    kernel: str,
    which: int,
    ego: EgoGraphs,
    num_steps: int,
    Z: Tensor,
    B: Tensor,
    weight: Tensor,
    *outputs: Tensor,
) -> None:
    """Run the forward (0) or the backward (1) pass in threads."""
    function: Any
    if kernel == "rw-step":
        function = (steps.forward, steps.backward)[which]
    elif kernel == "rw" and num_steps <= 2:
        function = (short.forward, short.backward)[which]
    else:
        function = (walks.forward, walks.backward)[which]
    inputs = (t.detach().reshape(-1).contiguous().numpy() for t in (Z, B, weight))
    arrays = (*inputs, *topology(ego), *(t.detach().numpy() for t in outputs))
    m = B.size(1)

    counter = np.zeros(1, dtype=np.int64)
    threads.run(
        lambda: function(counter, kernel == "drw", num_steps, m, *arrays),
        work=ego.num_members * Z.size(1) * (num_steps + 1),
    )
