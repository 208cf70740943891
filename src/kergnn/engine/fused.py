r"""The fused engine: kernels in compiled code, with their derivatives written by hand.

``rw`` with at most two steps is one compiled pass from the features to the sum over steps, see
:mod:`kergnn.engine.short`; nothing larger than the :math:`K_p` is ever stored. For other walks, the
similarities :math:`Z = X W^T` are one matrix product of torch, and compiled code turns them into
all :math:`K_p` (see :mod:`kergnn.engine.walks` and :mod:`kergnn.engine.steps`). Filters are taken
in blocks of ``LANES``, lane after lane, filled up with filters of zeros; the number m of filter
nodes is filled up to an even one. ``gcn`` has no walks: see :mod:`kergnn.engine.sums`.

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
from kergnn.engine import powers, short, steps, threads, walks
from kergnn.engine.lanes import LANES
from kergnn.engine.members import Array, group_of
from kergnn.engine.normalize import NORMALIZATIONS
from kergnn.engine.sums import normalized_sum
from kergnn.engine.topology import Topology, topology
from kergnn.kernels.deep_random_walk import check_hops
from kergnn.kernels.ragged import similarity


def evaluate(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    hop_weight: Tensor | None = None,
) -> Tensor:
    """Return every K_p of ``"rw"``, ``"rw-step"`` or ``"drw"``: (P + 1, N, D).

    Of ``"gcn"`` there is one, whatever P is.
    """
    num_filters, m, _ = attributes.shape
    _check(x, ego, adjacency, attributes)
    if kernel == "gcn":
        return normalized_sum(similarity(x, attributes).squeeze(-1), ego).unsqueeze(0)
    if is_short(kernel, num_steps):
        return _short(ego, x, adjacency, attributes, x.new_ones(num_steps + 1), -1)
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


def is_short(kernel: str, num_steps: int) -> bool:
    """Return whether a kernel is done in one pass, from the features to the sum over steps."""
    return kernel == "rw" and num_steps <= 2


def combine(
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    step_weight: Tensor,
    normalize: str | None,
) -> Tensor:
    """Return the sum of the normalised K_p of ``"rw"`` with at most two steps: (N, D)."""
    _check(x, ego, adjacency, attributes)
    normalization = NORMALIZATIONS.index(normalize)
    return _short(ego, x, adjacency, attributes, step_weight.to(x.dtype), normalization)


def _short(
    ego: EgoGraphs,
    x: Tensor,
    adjacency: Tensor,
    attributes: Tensor,
    step_weight: Tensor,
    normalization: int,
) -> Tensor:
    out: Tensor = _Short.apply(ego, normalization, x, adjacency, attributes, step_weight)  # type: ignore[no-untyped-call]
    num_filters = attributes.size(0)
    return out if out.size(-1) == num_filters else out[..., :num_filters]


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
            f"x is {x.dtype}, adjacency and attributes of the filters are {adjacency.dtype} and "
            f"{attributes.dtype}: they must have one type"
        )


def _blocks(tensor: Tensor, padding: tuple[int, ...]) -> Tensor:
    """Cut filters into blocks and fill up: (D, ...) -> (blocks, LANES, ...)."""
    missing = -tensor.size(0) % LANES
    if missing or any(padding):
        leading = (0, 0) * (tensor.dim() - 1 - len(padding) // 2)
        tensor = pad(tensor, (*padding, *leading, 0, missing))
    return tensor.reshape(tensor.size(0) // LANES, LANES, *tensor.shape[1:])


class _Short(torch.autograd.Function):
    """Features and filters -> k (N, blocks * LANES), or K (P + 1, N, blocks * LANES)."""

    @staticmethod
    def forward(
        ctx: Any,
        ego: EgoGraphs,
        normalization: int,
        x: Tensor,
        adjacency: Tensor,
        attributes: Tensor,
        step_weight: Tensor,
    ) -> Tensor:
        needs_x = ctx.needs_input_grad[2]
        inputs = _inputs(x, adjacency, attributes, step_weight, normalization, needs_x)
        num_blocks = -(-attributes.size(0) // LANES)
        K = x.new_empty(len(step_weight), ego.num_nodes, num_blocks * LANES)
        out = K[0] if normalization < 0 else torch.empty_like(K[0])
        ctx.ego, ctx.inputs, ctx.shape = ego, inputs, attributes.shape
        # The inputs see the tensors' memory; saved as well, so that torch notices if it changes.
        ctx.save_for_backward(x, adjacency, attributes, step_weight)
        ctx.K = K if normalization >= 0 else None
        _in_threads(short.forward, inputs, topology(ego), _flat(K), _flat(out))
        return K if normalization < 0 else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors
        inputs, graphs = ctx.inputs, topology(ctx.ego)
        (m, d, _), (num_filters, filter_size, _) = inputs.shape, ctx.shape
        num_blocks = -(-num_filters // LANES)
        parts = (min(short.PARTS, graphs.tiles.size - 1), num_blocks)
        needs_x, _, _, needs_steps = ctx.needs_input_grad[2:]
        new = grad_out.new_zeros
        gradients = {
            "x": grad_out.new_empty(
                num_blocks if needs_x else 0, ctx.ego.num_nodes, -(-d // LANES) * LANES
            ),
            "W": new(*parts, m, d, LANES),
            "B": new(*parts, m, m, LANES),
            "step_weight": new(*parts, len(inputs.step_weight) if needs_steps else 0, LANES),
        }
        grad_out = grad_out.contiguous()
        K = grad_out if ctx.K is None else ctx.K
        arrays = short.Gradients(**{name: _flat(tensor) for name, tensor in gradients.items()})
        _in_threads(short.backward, inputs, graphs, _flat(K), _flat(grad_out), arrays)
        grad_W = gradients["W"].sum(0).permute(0, 3, 1, 2).flatten(0, 1)
        grad_B = gradients["B"].sum(0).permute(0, 3, 1, 2).flatten(0, 1)
        return (
            None,
            None,
            gradients["x"].sum(0)[:, :d] if needs_x else None,
            grad_B[:num_filters, :filter_size, :filter_size],
            grad_W[:num_filters, :filter_size],
            gradients["step_weight"].sum((0, 1, 3)) if needs_steps else None,
        )


def _inputs(
    x: Tensor,
    adjacency: Tensor,
    attributes: Tensor,
    step_weight: Tensor,
    normalization: int,
    needs_x: bool,
) -> short.Inputs:
    """Arrange the filters in vectors; those by feature are for the gradient of x alone."""
    filter_size, d = attributes.shape[1:]
    odd = filter_size % 2
    W = _blocks(attributes, (0, 0, 0, odd))  # (blocks, LANES, m, d)
    B = _blocks(adjacency, (0, odd, 0, odd)).movedim(1, 3)  # (blocks, m, m, LANES)
    by_feature = pad(W if needs_x else W[:0], (0, -d % LANES))
    by_feature = by_feature.reshape(*by_feature.shape[:3], -(-d // LANES), LANES)
    m = filter_size + odd
    return short.Inputs(
        x=_flat(x),
        W=_flat(W.permute(0, 2, 3, 1)),
        B=_flat(B),
        W_by_feature=_flat(by_feature.permute(0, 3, 2, 1, 4)),
        step_weight=_flat(step_weight),
        shape=(m, d, filter_size),
        group=group_of(m),
        normalization=normalization,
    )


def _flat(tensor: Tensor) -> Array:
    return tensor.detach().contiguous().view(-1).numpy()


def _in_threads(function: Any, inputs: short.Inputs, graphs: Topology, *arrays: Any) -> None:
    counter = np.zeros(1, dtype=np.int64)
    work = graphs.node.size * inputs.B.size
    threads.run(lambda: function(counter, inputs, graphs, *arrays), work)


class _Fused(torch.autograd.Function):
    """(Z, B, weight) -> K (P + 1, N, blocks * LANES), by the compiled passes of a kernel."""

    @staticmethod
    def forward(
        ctx: Any, kernel: str, ego: EgoGraphs, num_steps: int, Z: Tensor, B: Tensor, weight: Tensor
    ) -> Tensor:
        ctx.kernel, ctx.ego, ctx.num_steps = kernel, ego, num_steps
        ctx.save_for_backward(Z, B, weight)
        K = Z.new_zeros(num_steps + 1, ego.num_nodes, B.size(0) * LANES)
        inputs = _walk_inputs(kernel, num_steps, Z, B, weight)
        _walk_in_threads(_passes(kernel).forward, inputs, ego, K.numpy())
        return K

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_K: Tensor) -> tuple[Tensor | None, ...]:
        Z, B, weight = ctx.saved_tensors
        num_tiles = topology(ctx.ego).tiles.size - 1
        grad_Z = torch.empty_like(Z, memory_format=torch.contiguous_format)
        grad_B, grad_weight = (t.new_zeros(num_tiles, *t.shape) for t in (B, weight))
        arrays = (grad_K.contiguous(), grad_Z.view(-1), grad_B.view(-1), grad_weight.view(-1))
        gradients = powers.Gradients(*(array.numpy() for array in arrays))
        inputs = _walk_inputs(ctx.kernel, ctx.num_steps, Z, B, weight)
        _walk_in_threads(_passes(ctx.kernel).backward, inputs, ctx.ego, gradients)
        return None, None, None, grad_Z, grad_B.sum(0), grad_weight.sum(0)


def _passes(kernel: str) -> Any:
    return steps if kernel == "rw-step" else walks


def _walk_inputs(
    kernel: str, num_steps: int, Z: Tensor, B: Tensor, weight: Tensor
) -> powers.Inputs:
    return powers.Inputs(kernel == "drw", num_steps, B.size(1), _flat(Z), _flat(B), _flat(weight))


def _walk_in_threads(function: Any, inputs: powers.Inputs, ego: EgoGraphs, output: Any) -> None:
    counter, graphs = np.zeros(1, dtype=np.int64), topology(ego)
    width = inputs.Z.size // max(ego.num_nodes, 1)
    work = ego.num_members * width * (inputs.num_steps + 1)
    threads.run(lambda: function(counter, inputs, graphs, output), work)
