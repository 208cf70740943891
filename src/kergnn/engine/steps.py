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

from typing import Any

import numpy as np

from kergnn.engine.lanes import LANES, bare, jit, load, store, take, zeros
from kergnn.engine.members import PAIR, Array, gather, propagate, scatter
from kergnn.engine.topology import Topology
from kergnn.engine.walks import clear, largest, powers, powers_backward, zero


@bare  # type: ignore[untyped-decorator]
def _at(a: int, b: int, n: int) -> int:
    return b // 2 * 2 * n + 2 * a + b % 2


@jit  # type: ignore[untyped-decorator]
def forward(
    counter: Array,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    topology: Topology,
    K: Array,
) -> None:
    """Fill K (P + 1, N, blocks) from Z (N, blocks, m), vectors of LANES filters both."""
    tiles, ptr = topology.tiles, topology.ptr
    num_blocks = K.shape[2] // LANES
    size = largest(ptr) * m * LANES
    S, U, T = np.empty(size, Z.dtype), np.empty(size, Z.dtype), np.empty(size, Z.dtype)
    table = np.empty(largest(tiles) * m * LANES, Z.dtype)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        _forward(unit, num_steps, m, Z, B, topology, S, U, T, table, K)


@bare  # type: ignore[untyped-decorator]
def _forward(
    unit: int,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    topology: Topology,
    S: Array,
    U: Array,
    T: Array,
    table: Array,
    K: Array,
) -> None:
    """Do one tile of nodes and one block of filters."""
    tiles, ptr = topology.tiles, topology.ptr
    num_nodes, num_blocks = K.shape[1], K.shape[2] // LANES
    tile, block = unit // num_blocks, unit % num_blocks
    lo, hi = tiles[tile], tiles[tile + 1]
    powers(Z, B, block, num_blocks, lo, hi, m, 1, table)
    for v in range(lo, hi):
        n = ptr[v + 1] - ptr[v]
        total = zeros(K)
        for b in range(0, m, 2):
            gather(Z, block * m + b, num_blocks * m, topology, v, PAIR, S, b * n)
            gather(table, b - lo * m, m, topology, v, PAIR, T, b * n)
        for i in range(n * m):
            total += load(S, i)
        store(K, v * num_blocks + block, total)
        for p in range(1, num_steps + 1):
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


@jit  # type: ignore[untyped-decorator]
def backward(
    counter: Array,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    topology: Topology,
    grad_K: Array,
    grad_Z: Array,
    grad_B: Array,
    grad_weight: Array,
) -> None:
    """Fill grad_Z (N, blocks, m), and of every tile grad_B (m, m)."""
    tiles, ptr = topology.tiles, topology.ptr
    num_blocks = grad_K.shape[2] // LANES
    size = largest(ptr) * m * LANES
    U, T = np.empty(size, Z.dtype), np.empty(size, Z.dtype)
    S, grad_S, grad_U = np.empty(size, Z.dtype), np.empty(size, Z.dtype), np.empty(size, Z.dtype)
    V = np.empty((num_steps + 1) * size, Z.dtype)
    table = np.empty(largest(tiles) * m * LANES, Z.dtype)
    grad_table = np.empty_like(table)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        _backward(unit, num_steps, m, Z, B, topology, S, U, T, V, table, grad_S, grad_U, grad_table,
                  grad_K, grad_Z, grad_B)  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _backward(
    unit: int,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    topology: Topology,
    S: Array,
    U: Array,
    T: Array,
    V: Array,
    table: Array,
    grad_S: Array,
    grad_U: Array,
    grad_table: Array,
    grad_K: Array,
    grad_Z: Array,
    grad_B: Array,
) -> None:
    """Do one tile of nodes and one block of filters."""
    tiles, ptr = topology.tiles, topology.ptr
    num_nodes, num_blocks = grad_K.shape[1], grad_K.shape[2] // LANES
    tile, block = unit // num_blocks, unit % num_blocks
    lo, hi = tiles[tile], tiles[tile + 1]
    powers(Z, B, block, num_blocks, lo, hi, m, 1, table)
    zero(grad_table, (hi - lo) * m)
    clear(grad_Z, block, num_blocks, lo, hi, m)
    for v in range(lo, hi):
        n = ptr[v + 1] - ptr[v]
        for b in range(0, m, 2):
            gather(Z, block * m + b, num_blocks * m, topology, v, PAIR, S, b * n)
            gather(table, b - lo * m, m, topology, v, PAIR, T, b * n)
        for p in range(1, num_steps + 1):
            if p > 1:
                for i in range(n * m):
                    store(U, i, load(S, i) * load(V, (p - 1) * n * m + i))
                _mix(U, B, block, m, n, T)
            for b in range(0, m, 2):
                to = p * n * m + b * n
                propagate(T, b * n, topology, v, PAIR, V, to)
        for i in range(n * m):
            store(grad_S, i, zeros(Z))
            store(T, i, zeros(Z))
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
                _outer(U, T, (tile * num_blocks + block) * m * m, m, n, grad_B)
        g = load(grad_K, v * num_blocks + block)
        for i in range(n * m):
            store(grad_S, i, load(grad_S, i) + g)
        for b in range(0, m, 2):
            scatter(grad_S, b * n, topology, v, PAIR, grad_Z, block * m + b, num_blocks * m)
            if num_steps > 0:
                scatter(T, b * n, topology, v, PAIR, grad_table, b - lo * m, m)
    powers_backward(Z, table, B, block, num_blocks, tile, lo, hi, m, 1, grad_table, grad_Z, grad_B)


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
