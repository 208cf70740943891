r"""Sums over neighbours, compiled, for networks that pass plain messages.

.. math::
    s_v = \sum_{u \in N(v)} h_u, \qquad \bar h_u = \sum_{v \in N(u)} \bar s_v

Terms are added edge after edge, as PyTorch Geometric adds them, so both give the same bits; but no
message is written down, of which a dense graph has many for every node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn._compile import compiled, numba_is_missing


def neighbor_sum(h: Tensor, edge_index: Tensor) -> Tensor:
    """Return the sum of the rows of every node's neighbours: (N, D) -> (N, D).

    Args:
        h: (N, D) node features.
        edge_index: (2, E) sources and targets.
    """
    out: Tensor = _NeighborSum.apply(h, *edge_index)  # type: ignore[no-untyped-call]
    return out


class _NeighborSum(torch.autograd.Function):
    """The sum over the edges' sources; its derivative is the sum over their targets."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, source: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(source, target)
        out = torch.zeros_like(h, memory_format=torch.contiguous_format)
        known = h.dtype in (torch.float32, torch.float64)
        if h.device.type != "cpu" or not known or numba_is_missing():
            return out.index_add_(0, target, h.index_select(0, source))
        for ends in (source, target):  # compiled code looks no further than this
            if ends.numel() and not 0 <= int(ends.min()) <= int(ends.max()) < len(h):
                raise IndexError(f"edge_index has a node that is none of {len(h)}")
        rows = h.detach().contiguous().numpy()
        _add(source.numpy(), target.numpy(), rows, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor, None, None]:
        source, target = ctx.saved_tensors
        grad: Tensor = _NeighborSum.apply(grad_out, target, source)  # type: ignore[no-untyped-call]
        return grad, None, None


@compiled
def _add(
    source: NDArray[np.int64], target: NDArray[np.int64], h: NDArray[Any], out: NDArray[Any]
) -> None:
    for e in range(source.size):
        row, term = out[target[e]], h[source[e]]  # as two rows the compiler vectorizes the sum
        for j in range(row.size):
            row[j] += term[j]
