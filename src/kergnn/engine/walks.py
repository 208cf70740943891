r"""``rw`` and ``drw``, forward and backward, for one tile of nodes and one block of filters.

Neither kernel mixes filter nodes within an ego-graph. With :math:`Z_q = X W^T B^q`, computed once
for every node, and :math:`U_q = A^q Z_q[G_v]`, which treats every filter node alone,

.. math::
    \text{rw:}\quad K_{2q} = \langle U_q, U_q \rangle, \quad
    K_{2q+1} = \langle U_q, U_{q+1} \rangle, \qquad
    \text{drw:}\quad K_p = \langle w\, U_0, U_p \rangle

where w depends on the hop of a member and on the filter node: q goes up to Q = ceil(P / 2) for
``rw`` (both adjacencies are symmetric) and to Q = P for ``drw``. With :math:`g_p` the gradient that
comes in for :math:`K_p(G_v, \cdot)`,

.. math::
    \text{rw:}\quad & \bar U_q = g_{2q-1} U_{q-1} + 2 g_{2q} U_q + g_{2q+1} U_{q+1} \\
    \text{drw:}\quad & \bar U_p = g_p\, w\, U_0 \ (p > 0), \quad
    \bar U_0 = w \Big(2 g_0 U_0 + \sum_{p>0} g_p U_p\Big), \quad
    \bar w_h = \sum_{\mathrm{hop}(a)=h} \sum_p g_p\, (U_0 U_p)_a \\
    & \bar Z_q[G_v] \mathrel{+}= A^q\, \bar U_q, \qquad \text{then for } q = Q, ..., 1: \quad
    \bar B \mathrel{+}= Z_{q-1}^T \bar Z_q, \quad \bar Z_{q-1} \mathrel{+}= \bar Z_q B^T

Nothing but Z is kept from the forward pass: the backward pass computes :math:`U_q` again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kergnn.engine.lanes import LANES, bare, jit, load, store, take, zeros
from kergnn.engine.members import PAIR, Array, gather, propagate, scatter
from kergnn.engine.powers import (
    Gradients,
    Inputs,
    Unit,
    clear,
    largest,
    num_blocks_of,
    powers,
    powers_backward,
    unit_of,
    zero,
)
from kergnn.engine.topology import Topology


class Scratch(NamedTuple):
    """Vectors of one ego-graph, U and T, and of the nodes of a tile, with their gradients."""

    U: Array
    T: Array
    table: Array
    grad_u: Array
    grad_table: Array


@jit  # type: ignore[untyped-decorator]
def forward(counter: Array, inputs: Inputs, topology: Topology, K: Array) -> None:
    """Fill K (P + 1, N, blocks), vectors of LANES filters."""
    num_blocks = num_blocks_of(inputs)
    scratch = _scratch(inputs, topology, False)
    while True:
        number = take(counter)
        if number >= (topology.tiles.size - 1) * num_blocks:
            break
        _forward(inputs, topology, unit_of(number, topology, num_blocks), scratch, K)


@jit  # type: ignore[untyped-decorator]
def backward(counter: Array, inputs: Inputs, topology: Topology, gradients: Gradients) -> None:
    """Fill the gradients."""
    num_blocks = num_blocks_of(inputs)
    scratch = _scratch(inputs, topology, True)
    while True:
        number = take(counter)
        if number >= (topology.tiles.size - 1) * num_blocks:
            break
        _backward(inputs, topology, unit_of(number, topology, num_blocks), scratch, gradients)


@jit  # type: ignore[untyped-decorator]
def _scratch(inputs: Inputs, topology: Topology, gradients: bool) -> Scratch:
    """Allocate what a thread needs for the largest tile and the largest ego-graph."""
    dtype, Q = inputs.Z.dtype, _last(inputs)
    rows = 2 * largest(topology.ptr) * LANES
    U, table = (Q + 1) * rows, Q * largest(topology.tiles) * inputs.m * LANES
    return Scratch(
        np.empty(U, dtype), np.empty(rows, dtype), np.empty(table, dtype),
        np.empty(U if gradients else 0, dtype), np.empty(table if gradients else 0, dtype),
    )  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _last(inputs: Inputs) -> int:
    """Return Q, the largest power."""
    return inputs.num_steps if inputs.deep else (inputs.num_steps + 1) // 2


@bare  # type: ignore[untyped-decorator]
def _forward(inputs: Inputs, topology: Topology, unit: Unit, scratch: Scratch, K: Array) -> None:
    """Do one tile of nodes and one block of filters."""
    ptr, hop, U = topology.ptr, topology.hop, scratch.U
    m, num_steps, weight = inputs.m, inputs.num_steps, inputs.weight
    block, num_blocks, num_nodes = unit.block, unit.num_blocks, K.shape[1]
    num_hops = weight.size // (num_blocks * m * LANES)
    Q = _last(inputs)
    powers(inputs, unit, Q, scratch.table)
    for v in range(unit.lo, unit.hi):
        start, n = ptr[v], ptr[v + 1] - ptr[v]
        for b in range(0, m, 2):
            _walk(inputs, topology, unit, v, b, Q, scratch)
            for q in range(Q + 1):
                even, odd = zeros(U), zeros(U)
                if inputs.deep:
                    for a in range(n):
                        w = (block * num_hops + hop[start + a]) * m + b
                        even += load(weight, w) * load(U, 2 * a) * load(U, 2 * (q * n + a))
                        odd += (
                            load(weight, w + 1) * load(U, 2 * a + 1) * load(U, 2 * (q * n + a) + 1)
                        )
                    k = (q * num_nodes + v) * num_blocks + block
                    store(K, k, load(K, k) + (even + odd))
                    continue
                row, following = 2 * q * n, 2 * min(q + 1, Q) * n
                for a in range(2 * n):
                    u = load(U, row + a)
                    even += u * u
                    odd += u * load(U, following + a)
                k = (2 * q * num_nodes + v) * num_blocks + block
                if 2 * q <= num_steps:
                    store(K, k, load(K, k) + even)
                if 2 * q + 1 <= num_steps:
                    k += num_nodes * num_blocks
                    store(K, k, load(K, k) + odd)


@bare  # type: ignore[untyped-decorator]
def _backward(
    inputs: Inputs, topology: Topology, unit: Unit, scratch: Scratch, gradients: Gradients
) -> None:
    """Do one tile of nodes and one block of filters."""
    ptr, hop = topology.ptr, topology.hop
    U, T, grad_U, grad_table = scratch.U, scratch.T, scratch.grad_u, scratch.grad_table
    m, num_steps, weight = inputs.m, inputs.num_steps, inputs.weight
    grad_K, grad_Z, grad_weight = gradients.K, gradients.Z, gradients.weight
    tile, lo, block, num_blocks = unit.tile, unit.lo, unit.block, unit.num_blocks
    count, num_nodes = unit.hi - lo, grad_K.shape[1]
    num_hops = weight.size // (num_blocks * m * LANES)
    Q, none = _last(inputs), zeros(inputs.Z)
    powers(inputs, unit, Q, scratch.table)
    zero(grad_table, Q * count * m)
    clear(grad_Z, unit, m)
    for v in range(lo, unit.hi):
        start, n = ptr[v], ptr[v + 1] - ptr[v]
        g = v * num_blocks + block
        step = num_nodes * num_blocks
        for b in range(0, m, 2):
            _walk(inputs, topology, unit, v, b, Q, scratch)
            if inputs.deep:
                g0 = load(grad_K, g)
                for a in range(2 * n):
                    w = (block * num_hops + hop[start + a // 2]) * m + b + a % 2
                    u, wu = load(U, a), load(weight, w) * load(U, a)
                    total = g0 * u
                    for p in range(1, Q + 1):
                        gp = load(grad_K, g + p * step)
                        total += gp * load(U, 2 * p * n + a)
                        store(grad_U, 2 * p * n + a, gp * wu)
                    store(grad_U, a, load(weight, w) * (total + g0 * u))
                    w += tile * num_blocks * num_hops * m
                    store(grad_weight, w, load(grad_weight, w) + total * u)
            else:
                for q in range(Q + 1):
                    before, here, after = none, none, none
                    if q > 0:
                        before = load(grad_K, g + (2 * q - 1) * step)
                    if 2 * q <= num_steps:
                        here = load(grad_K, g + 2 * q * step)
                        here += here
                    if q < Q:
                        after = load(grad_K, g + (2 * q + 1) * step)
                    row, down, up = 2 * q * n, 2 * max(q - 1, 0) * n, 2 * min(q + 1, Q) * n
                    for a in range(2 * n):
                        u = here * load(U, row + a)
                        u += before * load(U, down + a)
                        store(grad_U, row + a, u + after * load(U, up + a))
            scatter(grad_U, 0, topology, v, PAIR, grad_Z, block * m + b, num_blocks * m)
            for q in range(1, Q + 1):
                for i in range(q):
                    if i % 2 == 0:
                        propagate(grad_U, 2 * q * n, topology, v, PAIR, T, 0)
                    else:
                        propagate(T, 0, topology, v, PAIR, grad_U, 2 * q * n)
                first = ((q - 1) * count - lo) * m + b
                if q % 2:
                    scatter(T, 0, topology, v, PAIR, grad_table, first, m)
                else:
                    scatter(grad_U, 2 * q * n, topology, v, PAIR, grad_table, first, m)
    powers_backward(inputs, unit, Q, scratch.table, grad_table, gradients)


@bare  # type: ignore[untyped-decorator]
def _walk(
    inputs: Inputs, topology: Topology, unit: Unit, v: int, b: int, Q: int, scratch: Scratch
) -> None:
    """Fill U with U_q = A^q Z_q[G_v], q = 0 to Q, for filter nodes b and b + 1."""
    m, U, T, table = inputs.m, scratch.U, scratch.T, scratch.table
    n, count = topology.ptr[v + 1] - topology.ptr[v], unit.hi - unit.lo
    gather(inputs.Z, unit.block * m + b, unit.num_blocks * m, topology, v, PAIR, U, 0)
    for q in range(1, Q + 1):
        first = ((q - 1) * count - unit.lo) * m + b
        if q % 2:
            gather(table, first, m, topology, v, PAIR, T, 0)
        else:
            gather(table, first, m, topology, v, PAIR, U, 2 * q * n)
        for i in range(q, 0, -1):
            if i % 2:
                propagate(T, 0, topology, v, PAIR, U, 2 * q * n)
            else:
                propagate(U, 2 * q * n, topology, v, PAIR, T, 0)
