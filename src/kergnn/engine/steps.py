r"""``rw-step``, forward and backward, for one tile of nodes and one block of filters.

With :math:`S = Z[G_v]`, :math:`Z = X W^T`, and products of elements written :math:`\odot`,

.. math::
    U_0 = S, \qquad T_p = U_{p-1} B, \qquad V_p = A T_p, \qquad U_p = S \odot V_p, \qquad
    K_p = \sum_{a,b} (U_p)_{ab}

where :math:`T_1 = (Z B)[G_v]` is computed once for every node. With :math:`g_p` the gradient that
comes in for :math:`K_p(G_v, \cdot)` and :math:`\bar U_P = g_P`, for p = P, ..., 1:

.. math::
    \bar S \mathrel{+}= \bar U_p \odot V_p, \qquad \bar T_p = A (S \odot \bar U_p), \qquad
    \bar B \mathrel{+}= U_{p-1}^T \bar T_p, \qquad \bar U_{p-1} = g_{p-1} + \bar T_p B^T

and :math:`\bar S \mathrel{+}= \bar U_0`. Only Z is kept from the forward pass.

Vector b of member a of an ego-graph of n members is at ``_at(a, b, n)``: pairs of filter nodes as
:mod:`kergnn.engine.members` wants them, one pair after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
    """Vectors of one ego-graph, and of the nodes of a tile (the tables), with their gradients."""

    S: Array
    U: Array
    T: Array
    V: Array
    table: Array
    grad_s: Array
    grad_u: Array
    grad_table: Array


@bare  # type: ignore[untyped-decorator]
def _at(a: int, b: int, n: int) -> int:
    return b // 2 * 2 * n + 2 * a + b % 2


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
    """Fill the gradients; there is none of the weights of hops."""
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
    dtype, size = inputs.Z.dtype, largest(topology.ptr) * inputs.m * LANES
    table = largest(topology.tiles) * inputs.m * LANES
    grad_size, grad_table = (size, table) if gradients else (0, 0)
    return Scratch(
        np.empty(size, dtype), np.empty(size, dtype), np.empty(size, dtype),
        np.empty((inputs.num_steps + 1) * grad_size, dtype), np.empty(table, dtype),
        np.empty(grad_size, dtype), np.empty(grad_size, dtype), np.empty(grad_table, dtype),
    )  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _forward(inputs: Inputs, topology: Topology, unit: Unit, scratch: Scratch, K: Array) -> None:
    """Do one tile of nodes and one block of filters."""
    S, U, T = scratch.S, scratch.U, scratch.T
    ptr, B, m = topology.ptr, inputs.B, inputs.m
    block, num_blocks, num_nodes = unit.block, unit.num_blocks, K.shape[1]
    powers(inputs, unit, 1, scratch.table)
    for v in range(unit.lo, unit.hi):
        n = ptr[v + 1] - ptr[v]
        total = zeros(K)
        _gather(inputs, topology, unit, v, scratch)
        for i in range(n * m):
            total += load(S, i)
        store(K, v * num_blocks + block, total)
        for p in range(1, inputs.num_steps + 1):
            if p > 1:
                _mix(U, B, block, m, n, T)
            total = zeros(K)
            for b in range(0, m, 2):
                propagate(T, b * n, topology, v, PAIR, U, b * n)
            for i in range(n * m):
                u = load(S, i) * load(U, i)
                store(U, i, u)
                total += u
            store(K, (p * num_nodes + v) * num_blocks + block, total)


@bare  # type: ignore[untyped-decorator]
def _backward(
    inputs: Inputs, topology: Topology, unit: Unit, scratch: Scratch, gradients: Gradients
) -> None:
    """Do one tile of nodes and one block of filters."""
    S, U, T, V = scratch.S, scratch.U, scratch.T, scratch.V
    grad_S, grad_U, grad_table = scratch.grad_s, scratch.grad_u, scratch.grad_table
    grad_K, grad_Z, grad_B = gradients.K, gradients.Z, gradients.B
    ptr, B, m, num_steps = topology.ptr, inputs.B, inputs.m, inputs.num_steps
    lo, block, num_blocks, num_nodes = unit.lo, unit.block, unit.num_blocks, grad_K.shape[1]
    powers(inputs, unit, 1, scratch.table)
    zero(grad_table, (unit.hi - lo) * m)
    clear(grad_Z, unit, m)
    for v in range(lo, unit.hi):
        n = ptr[v + 1] - ptr[v]
        _gather(inputs, topology, unit, v, scratch)
        for p in range(1, num_steps + 1):
            if p > 1:
                for i in range(n * m):
                    store(U, i, load(S, i) * load(V, (p - 1) * n * m + i))
                _mix(U, B, block, m, n, T)
            for b in range(0, m, 2):
                to = p * n * m + b * n
                propagate(T, b * n, topology, v, PAIR, V, to)
        for i in range(n * m):
            store(grad_S, i, zeros(S))
            store(T, i, zeros(S))
        for p in range(num_steps, 0, -1):
            g = load(grad_K, (p * num_nodes + v) * num_blocks + block)
            _mix_backward(T, B, block, m, n, g, grad_U)
            for i in range(n * m):
                u = load(grad_U, i)
                store(grad_S, i, load(grad_S, i) + u * load(V, p * n * m + i))
                store(grad_U, i, u * load(S, i))
            for b in range(0, m, 2):
                propagate(grad_U, b * n, topology, v, PAIR, T, b * n)
            if p > 1:
                for i in range(n * m):
                    store(U, i, load(S, i) * load(V, (p - 1) * n * m + i))
                _outer(U, T, (unit.tile * num_blocks + block) * m * m, m, n, grad_B)
        g = load(grad_K, v * num_blocks + block)
        for i in range(n * m):
            store(grad_S, i, load(grad_S, i) + g)
        for b in range(0, m, 2):
            scatter(grad_S, b * n, topology, v, PAIR, grad_Z, block * m + b, num_blocks * m)
            if num_steps > 0:
                scatter(T, b * n, topology, v, PAIR, grad_table, b - lo * m, m)
    powers_backward(inputs, unit, 1, scratch.table, grad_table, gradients)


@bare  # type: ignore[untyped-decorator]
def _gather(inputs: Inputs, topology: Topology, unit: Unit, v: int, scratch: Scratch) -> None:
    """Fill S with the members' similarities and T with those after a step of the filters."""
    m, n = inputs.m, topology.ptr[v + 1] - topology.ptr[v]
    for b in range(0, m, 2):
        first = unit.block * m + b
        gather(inputs.Z, first, unit.num_blocks * m, topology, v, PAIR, scratch.S, b * n)
        gather(scratch.table, b - unit.lo * m, m, topology, v, PAIR, scratch.T, b * n)


@bare  # type: ignore[untyped-decorator]
def _mix(U: Array, B: Array, block: int, m: int, n: int, out: Array) -> None:
    """Set out = U B, for every member."""
    for a in range(n):
        for c in range(0, m, 2):
            x, y = zeros(U), zeros(U)
            for b in range(m):
                u = load(U, _at(a, b, n))
                x += u * load(B, (block * m + b) * m + c)
                y += u * load(B, (block * m + b) * m + c + 1)
            store(out, _at(a, c, n), x)
            store(out, _at(a, c + 1, n), y)


@bare  # type: ignore[untyped-decorator]
def _mix_backward(T: Array, B: Array, block: int, m: int, n: int, g: Any, out: Array) -> None:
    """Set out = g + T B^T, for every member."""
    for a in range(n):
        for b in range(0, m, 2):
            x, y = g, g
            for c in range(m):
                t = load(T, _at(a, c, n))
                x += t * load(B, (block * m + b) * m + c)
                y += t * load(B, (block * m + b + 1) * m + c)
            store(out, _at(a, b, n), x)
            store(out, _at(a, b + 1, n), y)


@bare  # type: ignore[untyped-decorator]
def _outer(U: Array, T: Array, first: int, m: int, n: int, out: Array) -> None:
    """Add U^T T, summed over the members, to the m * m vectors from ``first`` on."""
    for b in range(m):
        for c in range(m):
            total = zeros(U)
            for a in range(n):
                total += load(U, _at(a, b, n)) * load(T, _at(a, c, n))
            k = first + b * m + c
            store(out, k, load(out, k) + total)
