r"""``rw`` with walks of at most two steps, forward and backward: the usual case, without detours.

With :math:`Z = X W^T` and :math:`Y = Z B`, both computed once for every node, and
:math:`V_a = \sum_{c \in N(a)} Y_c` for a member a with the neighbours N(a) within :math:`G_v`,

.. math::
    K_0 = \sum_a \langle Z_a, Z_a \rangle, \qquad K_1 = \sum_a \langle Z_a, V_a \rangle, \qquad
    K_2 = \sum_a \langle V_a, V_a \rangle .

With :math:`g_p` the gradient that comes in for :math:`K_p(G_v, \cdot)`, every member adds

.. math::
    \bar Z_a \mathrel{+}= 2 g_0 Z_a + g_1 V_a, \qquad
    \bar Y_c \mathrel{+}= g_1 Z_a + 2 g_2 V_a \text{ for } c \in N(a)

and in the end :math:`\bar B = Z^T \bar Y`, :math:`\bar Z \mathrel{+}= \bar Y B^T`. The terms of
:math:`K_0` are numbers of a node, so they and their gradients are summed over ego-graphs before
they meet Z. :math:`V_a` never leaves the registers.
"""

from __future__ import annotations

import numpy as np

from kergnn.engine.lanes import LANES, jit, load, store, take, zeros
from kergnn.engine.members import Array
from kergnn.engine.walks import clear, largest, powers, powers_backward


@jit  # type: ignore[untyped-decorator]
def forward(
    counter: Array,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    tiles: Array,
    ptr: Array,
    edge_ptr: Array,
    index: Array,
    hop: Array,
    degree: Array,
    neighbor: Array,
    source: Array,
    K: Array,
) -> None:
    """Fill K (P + 1, N, blocks) from Z (N, blocks, m), vectors of LANES filters both."""
    num_nodes, num_blocks = K.shape[1], K.shape[2] // LANES
    step, stride = num_nodes * num_blocks, num_blocks * m
    Y = np.empty(largest(tiles) * m * LANES, Z.dtype)
    square = np.empty(largest(tiles) * LANES, Z.dtype)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        tile, block = unit // num_blocks, unit % num_blocks
        lo, hi = tiles[tile], tiles[tile + 1]
        if num_steps > 0:
            powers(Z, B, block, num_blocks, lo, hi, m, 1, Y)
        for v in range(lo, hi):
            total = zeros(Z)
            for b in range(m):
                z = load(Z, v * stride + block * m + b)
                total += z * z
            store(square, v - lo, total)
        for v in range(lo, hi):
            K0, K1, K2 = zeros(Z), zeros(Z), zeros(Z)
            edge = edge_ptr[v]
            for a in range(ptr[v], ptr[v + 1]):
                node = index[a]
                K0 += load(square, node - lo)
                if num_steps > 0 and degree[a] > 0:
                    stop = edge + degree[a]
                    for b in range(0, m, 2):
                        V, V_ = zeros(Z), zeros(Z)
                        for e in range(edge, stop):
                            row = (source[e] - lo) * m + b
                            V += load(Y, row)
                            V_ += load(Y, row + 1)
                        row = node * stride + block * m + b
                        K1 += V * load(Z, row)
                        K1 += V_ * load(Z, row + 1)
                        K2 += V * V
                        K2 += V_ * V_
                    edge = stop
            k = v * num_blocks + block
            store(K, k, K0)
            if num_steps > 0:
                store(K, k + step, K1)
            if num_steps > 1:
                store(K, k + 2 * step, K2)


@jit  # type: ignore[untyped-decorator]
def backward(
    counter: Array,
    deep: bool,
    num_steps: int,
    m: int,
    Z: Array,
    B: Array,
    weight: Array,
    tiles: Array,
    ptr: Array,
    edge_ptr: Array,
    index: Array,
    hop: Array,
    degree: Array,
    neighbor: Array,
    source: Array,
    grad_K: Array,
    grad_Z: Array,
    grad_B: Array,
    grad_weight: Array,
) -> None:
    """Fill grad_Z (N, blocks, m) and, of every tile, grad_B (m, m)."""
    num_nodes, num_blocks = grad_K.shape[1], grad_K.shape[2] // LANES
    step, stride = num_nodes * num_blocks, num_blocks * m
    Y = np.empty(largest(tiles) * m * LANES, Z.dtype)
    grad_Y = np.empty_like(Y)
    twice = np.empty(largest(tiles) * LANES, Z.dtype)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        tile, block = unit // num_blocks, unit % num_blocks
        lo, hi = tiles[tile], tiles[tile + 1]
        grad_Y[: (hi - lo) * m * LANES] = 0
        clear(grad_Z, block, num_blocks, lo, hi, m)
        twice[: (hi - lo) * LANES] = 0
        if num_steps > 0:
            powers(Z, B, block, num_blocks, lo, hi, m, 1, Y)
        for v in range(lo, hi):
            k = v * num_blocks + block
            g0, g1, g2 = load(grad_K, k), zeros(Z), zeros(Z)
            g0 += g0
            if num_steps > 0:
                g1 = load(grad_K, k + step)
            if num_steps > 1:
                g2 = load(grad_K, k + 2 * step)
                g2 += g2
            edge = edge_ptr[v]
            for a in range(ptr[v], ptr[v + 1]):
                node = index[a]
                store(twice, node - lo, load(twice, node - lo) + g0)
                if num_steps > 0 and degree[a] > 0:
                    stop = edge + degree[a]
                    for b in range(0, m, 2):
                        V, V_ = zeros(Z), zeros(Z)
                        for e in range(edge, stop):
                            row = (source[e] - lo) * m + b
                            V += load(Y, row)
                            V_ += load(Y, row + 1)
                        row = node * stride + block * m + b
                        store(grad_Z, row, load(grad_Z, row) + g1 * V)
                        store(grad_Z, row + 1, load(grad_Z, row + 1) + g1 * V_)
                        V = g2 * V + g1 * load(Z, row)
                        V_ = g2 * V_ + g1 * load(Z, row + 1)
                        for e in range(edge, stop):
                            row = (source[e] - lo) * m + b
                            store(grad_Y, row, load(grad_Y, row) + V)
                            store(grad_Y, row + 1, load(grad_Y, row + 1) + V_)
                    edge = stop
        for v in range(lo, hi):
            g0 = load(twice, v - lo)
            for b in range(m):
                row = v * stride + block * m + b
                store(grad_Z, row, load(grad_Z, row) + g0 * load(Z, row))
        if num_steps > 0:
            powers_backward(Z, Y, B, block, num_blocks, tile, lo, hi, m, 1, grad_Y, grad_Z, grad_B)
