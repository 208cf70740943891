r"""Sums over the members of every ego-graph, compiled: ``gcn``, and the smoothing of logits.

.. math::
    s_v = \sum_{a \in G_v} h_a, \qquad \bar h_a = \sum_{v :\, a \in G_v} \bar s_v

Terms are added member after member, as torch adds them, so both give the same bits; but nothing as
long as the list of all members is written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.engine import threads
from kergnn.engine.lanes import jit, take
from kergnn.engine.topology import Array, Topology, topology


def normalized_sum(h: Tensor, ego: EgoGraphs) -> Tensor:
    r"""Return :math:`\sum_{a \in G_v} h_a / \sqrt{|G_v|\,|G_a|}` for every node: (N, D) -> (N, D).

    See :func:`kergnn.kernels.ragged.normalized_sum`, its form in plain torch.
    """
    if h.dim() != 2 or len(h) != ego.num_nodes:  # compiled code looks no further than this
        raise ValueError(
            f"h has shape {tuple(h.shape)}: it must be (N, D) with N = {ego.num_nodes}"
        )
    size = torch.from_numpy(np.diff(topology(ego).ptr))
    scale = size.to(h.dtype).rsqrt().unsqueeze(-1)
    total: Tensor = _Sum.apply(ego, scale * h, False)  # type: ignore[no-untyped-call]
    return scale * total


class _Sum(torch.autograd.Function):
    """The sum over members (N, D) -> (N, D), or its transpose, which is its derivative."""

    @staticmethod
    def forward(ctx: Any, ego: EgoGraphs, h: Tensor, transposed: bool) -> Tensor:
        ctx.ego, ctx.transposed = ego, transposed
        out = torch.zeros_like(h, memory_format=torch.contiguous_format)
        arrays = (topology(ego), h.detach().contiguous().numpy(), out.numpy())
        counter = np.zeros(1, dtype=np.int64)
        work = ego.num_members * h.size(1)
        threads.run(lambda: _add(counter, transposed, *arrays), work)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[None, Tensor, None]:
        return None, _Sum.apply(ctx.ego, grad_out, not ctx.transposed), None  # type: ignore[no-untyped-call]


@jit  # type: ignore[untyped-decorator]
def _add(counter: Array, transposed: bool, topology: Topology, h: Array, out: Array) -> None:
    """Add the rows of members to that of their centre, or the other way round, tile after tile."""
    ptr, node = topology.ptr, topology.node
    while True:
        tile = take(counter)
        if tile >= topology.tiles.size - 1:
            break
        for v in range(topology.tiles[tile], topology.tiles[tile + 1]):
            for i in range(ptr[v], ptr[v + 1]):
                source, target = (v, node[i]) if transposed else (node[i], v)
                for j in range(h.shape[1]):
                    out[target, j] += h[source, j]
