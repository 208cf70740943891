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

import numpy as np

from kergnn.engine.lanes import LANES, bare, jit, load, store, take, zeros
from kergnn.engine.members import PAIR, Array, gather, propagate, scatter
from kergnn.engine.topology import Topology

# Nodes whose rows stay in the first-level cache while they are read for every pair of filter nodes.
CHUNK = 16


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
    Q = num_steps if deep else (num_steps + 1) // 2
    rows = 2 * largest(ptr) * LANES
    U, T = np.empty((Q + 1) * rows, Z.dtype), np.empty(rows, Z.dtype)
    table = np.empty(Q * largest(tiles) * m * LANES, Z.dtype)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        _forward(unit, deep, num_steps, m, Z, B, weight, topology, U, T, table, K)


@bare  # type: ignore[untyped-decorator]
def _forward(
    unit: int,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    topology: Topology,
    U: Array,
    T: Array,
    table: Array,
    K: Array,
) -> None:
    """Do one tile of nodes and one block of filters."""
    tiles, ptr, hop = topology.tiles, topology.ptr, topology.hop
    num_nodes, num_blocks = K.shape[1], K.shape[2] // LANES
    num_hops = weight.size // (num_blocks * m * LANES)
    Q = num_steps if deep else (num_steps + 1) // 2
    tile, block = unit // num_blocks, unit % num_blocks
    lo, hi = tiles[tile], tiles[tile + 1]
    powers(Z, B, block, num_blocks, lo, hi, m, Q, table)
    for v in range(lo, hi):
        start, n = ptr[v], ptr[v + 1] - ptr[v]
        for b in range(0, m, 2):
            _walk(Z, table, block, num_blocks, lo, hi, m, b, Q,
                  topology, v, U, T)  # fmt: skip
            for q in range(Q + 1):
                even, odd = zeros(U), zeros(U)
                if deep:
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
    """Fill grad_Z (N, blocks, m), and of every tile grad_B (m, m) and grad_weight (H + 1, m)."""
    tiles, ptr = topology.tiles, topology.ptr
    num_blocks = grad_K.shape[2] // LANES
    Q = num_steps if deep else (num_steps + 1) // 2
    rows = 2 * largest(ptr) * LANES
    U, T = np.empty((Q + 1) * rows, Z.dtype), np.empty(rows, Z.dtype)
    table = np.empty(Q * largest(tiles) * m * LANES, Z.dtype)
    grad_U, grad_table = np.empty_like(U), np.empty_like(table)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        _backward(unit, deep, num_steps, m, Z, B, weight, topology, U, T, table, grad_U, grad_table,
                  grad_K, grad_Z, grad_B, grad_weight)  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _backward(
    unit: int,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    topology: Topology,
    U: Array,
    T: Array,
    table: Array,
    grad_U: Array,
    grad_table: Array,
    grad_K: Array,
    grad_Z: Array,
    grad_B: Array,
    grad_weight: Array,
) -> None:
    """Do one tile of nodes and one block of filters."""
    tiles, ptr, hop = topology.tiles, topology.ptr, topology.hop
    num_nodes, num_blocks = grad_K.shape[1], grad_K.shape[2] // LANES
    num_hops = weight.size // (num_blocks * m * LANES)
    Q, none = num_steps if deep else (num_steps + 1) // 2, zeros(Z)
    tile, block = unit // num_blocks, unit % num_blocks
    lo, hi = tiles[tile], tiles[tile + 1]
    count = hi - lo
    powers(Z, B, block, num_blocks, lo, hi, m, Q, table)
    zero(grad_table, Q * count * m)
    clear(grad_Z, block, num_blocks, lo, hi, m)
    for v in range(lo, hi):
        start, n = ptr[v], ptr[v + 1] - ptr[v]
        g = v * num_blocks + block
        step = num_nodes * num_blocks
        for b in range(0, m, 2):
            _walk(Z, table, block, num_blocks, lo, hi, m, b, Q,
                  topology, v, U, T)  # fmt: skip
            if deep:
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
    powers_backward(Z, table, B, block, num_blocks, tile, lo, hi, m, Q, grad_table, grad_Z, grad_B)


@jit  # type: ignore[untyped-decorator]
def largest(ptr: Array) -> int:
    """Return the largest distance between neighbours in an ascending list."""
    value = 0
    for i in range(ptr.size - 1):
        value = max(value, ptr[i + 1] - ptr[i])
    return value


@bare  # type: ignore[untyped-decorator]
def zero(array: Array, count: int) -> None:
    """Set the first vectors of an array to zero."""
    for i in range(count):
        store(array, i, zeros(array))


@bare  # type: ignore[untyped-decorator]
def clear(Z: Array, block: int, num_blocks: int, lo: int, hi: int, m: int) -> None:
    """Set a unit's part of an array like Z to zero: it is in the cache then, where it is needed."""
    for v in range(lo, hi):
        for b in range(m):
            store(Z, (v * num_blocks + block) * m + b, zeros(Z))


@bare  # type: ignore[untyped-decorator]
def powers(
    Z: Array, B: Array, block: int, num_blocks: int, lo: int, hi: int, m: int, Q: int, table: Array
) -> None:
    """Fill the table with Z_q = Z_{q-1} B, q = 1 to Q, of the nodes of a tile."""
    count = hi - lo
    for q in range(1, Q + 1):
        for v in range(count):
            row = ((q - 1) * count + v) * m
            for c in range(0, m, 2):
                x, y = zeros(Z), zeros(Z)
                for b in range(m):
                    if q == 1:
                        z = load(Z, ((lo + v) * num_blocks + block) * m + b)
                    else:
                        z = load(table, row - count * m + b)
                    x += z * load(B, (block * m + b) * m + c)
                    y += z * load(B, (block * m + b) * m + c + 1)
                store(table, row + c, x)
                store(table, row + c + 1, y)


@bare  # type: ignore[untyped-decorator]
def powers_backward(
    Z: Array,
    table: Array,
    B: Array,
    block: int,
    num_blocks: int,
    tile: int,
    lo: int,
    hi: int,
    m: int,
    Q: int,
    grad_table: Array,
    grad_Z: Array,
    grad_B: Array,
) -> None:
    """Carry the gradients of Z_Q to Z_1 on to Z and B."""
    count = hi - lo
    for q in range(Q, 0, -1):
        source, target, first, stride = table, grad_table, (q - 2) * count * m, m
        if q == 1:
            source, target = Z, grad_Z
            first, stride = (lo * num_blocks + block) * m, num_blocks * m
        here = (q - 1) * count * m
        for begin in range(0, count, CHUNK):
            end = min(begin + CHUNK, count)
            for b in range(m):
                for c in range(0, m, 2):
                    x, y = zeros(Z), zeros(Z)
                    for v in range(begin, end):
                        z = load(source, first + v * stride + b)
                        x += z * load(grad_table, here + v * m + c)
                        y += z * load(grad_table, here + v * m + c + 1)
                    k = ((tile * num_blocks + block) * m + b) * m + c
                    store(grad_B, k, load(grad_B, k) + x)
                    store(grad_B, k + 1, load(grad_B, k + 1) + y)
        for v in range(count):
            for b in range(0, m, 2):
                row = first + v * stride + b
                x, y = load(target, row), load(target, row + 1)
                for c in range(m):
                    z = load(grad_table, here + v * m + c)
                    x += z * load(B, (block * m + b) * m + c)
                    y += z * load(B, (block * m + b + 1) * m + c)
                store(target, row, x)
                store(target, row + 1, y)


@bare  # type: ignore[untyped-decorator]
def _walk(
    Z: Array,
    table: Array,
    block: int,
    num_blocks: int,
    lo: int,
    hi: int,
    m: int,
    b: int,
    Q: int,
    topology: Topology,
    v: int,
    U: Array,
    T: Array,
) -> None:
    """Fill U with U_q = A^q Z_q[G_v], q = 0 to Q, for filter nodes b and b + 1."""
    n = topology.ptr[v + 1] - topology.ptr[v]
    gather(Z, block * m + b, num_blocks * m, topology, v, PAIR, U, 0)
    for q in range(1, Q + 1):
        first = ((q - 1) * (hi - lo) - lo) * m + b
        if q % 2:
            gather(table, first, m, topology, v, PAIR, T, 0)
        else:
            gather(table, first, m, topology, v, PAIR, U, 2 * q * n)
        for i in range(q, 0, -1):
            if i % 2:
                propagate(T, 0, topology, v, PAIR, U, 2 * q * n)
            else:
                propagate(U, 2 * q * n, topology, v, PAIR, T, 0)
