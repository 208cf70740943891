r"""``rw`` with walks of at most two steps, forward and backward: the usual case, all in one pass.

With :math:`Z = X W^T` and :math:`Y = Z B`, both computed once for every node, and
:math:`V_a = \sum_{c \in N(a)} Y_c` for a member a with the neighbours N(a) within :math:`G_v`,

.. math::
    K_0 = \sum_a \langle Z_a, Z_a \rangle, \qquad K_1 = \sum_a \langle Z_a, V_a \rangle, \qquad
    K_2 = \sum_a \langle V_a, V_a \rangle .

With :math:`g_p` the gradient that comes in for :math:`K_p(G_v, \cdot)`, every member adds

.. math::
    \bar Z_a \mathrel{+}= 2 g_0 Z_a + g_1 V_a, \qquad
    \bar Y_c \mathrel{+}= g_1 Z_a + 2 g_2 V_a \text{ for } c \in N(a)

and in the end :math:`\bar B = Z^T \bar Y`, :math:`\bar Z \mathrel{+}= \bar Y B^T`,
:math:`\bar W = \bar Z^T X` and :math:`\bar X = \bar Z W`. The terms of :math:`K_0` are numbers of a
node, so they and their gradients are summed over ego-graphs before they meet Z.

Z, Y and their gradients exist for one tile of nodes and one block of filters at a time, in the
second-level cache; the backward pass computes Z and Y again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kergnn.engine.combine import combine, combine_backward
from kergnn.engine.lanes import LANES, jit, load, store, take, zeros
from kergnn.engine.members import Array, gather, propagate, scatter
from kergnn.engine.products import (
    add_sparse_transposed_product,
    add_transposed_product,
    is_sparse,
    product,
    sparse_product,
)
from kergnn.engine.topology import Topology
from kergnn.engine.walks import largest, powers, powers_backward

# Gradients of filters are summed over this many parts of the nodes, each in one thread.
PARTS = 16


class Inputs(NamedTuple):
    """What both passes read; vectors of LANES filters, m even.

    Args:
        x: (N, d) features.
        W: (blocks, m, d) vectors of filter attributes.
        B: (blocks, m, m) vectors of filter adjacencies.
        W_by_feature: (blocks, d / LANES, m, LANES) vectors of LANES *features*.
        step_weight: (P + 1,) weights of the sum over steps.
        shape: m, d, and the number of filter nodes before m was made even.
        normalization: how values are normalised, by number; -1 for values that are not summed.
    """

    x: Array
    W: Array
    B: Array
    W_by_feature: Array
    step_weight: Array
    shape: tuple[int, int, int]
    normalization: int


class Gradients(NamedTuple):
    """What the backward pass fills: of every block x, and of every part and block the others.

    Arrays without elements are those of inputs that need no gradient.
    """

    x: Array
    W: Array
    B: Array
    step_weight: Array


@jit  # type: ignore[untyped-decorator]
def forward(counter: Array, inputs: Inputs, topology: Topology, K: Array, out: Array) -> None:
    """Fill K (P + 1, N, blocks) and, unless values are not summed, out (N, blocks)."""
    tiles, ptr = topology.tiles, topology.ptr
    m, d, filter_size = inputs.shape
    num_blocks, num_steps = inputs.B.size // (m * m * LANES), inputs.step_weight.size - 1
    step = (ptr.size - 1) * num_blocks
    rows, members = largest(tiles) * LANES, 2 * largest(ptr) * LANES
    Z, Y = np.empty(rows * m, K.dtype), np.empty(rows * m, K.dtype)
    square = np.empty(rows, K.dtype)
    V, T = np.empty(members, K.dtype), np.empty(members, K.dtype)
    while True:
        unit = take(counter)
        if unit >= (tiles.size - 1) * num_blocks:
            break
        tile, block = unit // num_blocks, unit % num_blocks
        lo, hi = tiles[tile], tiles[tile + 1]
        _similarities(inputs, lo, hi, block, Z, Y)
        for v in range(hi - lo):
            total = zeros(K)
            for b in range(m):
                z = load(Z, v * m + b)
                total += z * z
            store(square, v, total)
        for v in range(lo, hi):
            start, n = ptr[v], ptr[v + 1] - ptr[v]
            K0, K1, K2 = zeros(K), zeros(K), zeros(K)
            for a in range(start, start + n):
                K0 += load(square, topology.node[a] - lo)
            if num_steps > 0 and n > 1:
                for b in range(0, m, 2):
                    gather(Y, b - lo * m, m, topology.node, start, n, T, 0)
                    propagate(T, 0, topology, v, V, 0)
                    for a in range(n):
                        x, y = load(V, 2 * a), load(V, 2 * a + 1)
                        row = (topology.node[start + a] - lo) * m + b
                        K1 += x * load(Z, row)
                        K2 += x * x
                        K1 += y * load(Z, row + 1)
                        K2 += y * y
            at = v * num_blocks + block
            store(K, at, K0)
            if num_steps > 0:
                store(K, at + step, K1)
            if num_steps > 1:
                store(K, at + 2 * step, K2)
            if inputs.normalization >= 0:
                combine(K, n, filter_size, inputs.step_weight, inputs.normalization, at, step, out)


@jit  # type: ignore[untyped-decorator]
def backward(
    counter: Array,
    inputs: Inputs,
    topology: Topology,
    K: Array,
    grad_out: Array,
    gradients: Gradients,
) -> None:
    """Fill the gradients; ``grad_out`` is that of K where values are not summed."""
    tiles, ptr = topology.tiles, topology.ptr
    m, d, filter_size = inputs.shape
    num_blocks, num_steps = inputs.B.size // (m * m * LANES), inputs.step_weight.size - 1
    num_nodes, num_tiles = ptr.size - 1, tiles.size - 1
    num_parts = min(PARTS, num_tiles)
    step, width = num_nodes * num_blocks, (d + LANES - 1) // LANES
    rows, members = largest(tiles) * LANES, 2 * largest(ptr) * LANES
    Z, Y = np.empty(rows * m, K.dtype), np.empty(rows * m, K.dtype)
    grad_Z, grad_Y, twice = np.empty_like(Z), np.empty_like(Y), np.empty(rows, K.dtype)
    V, T = np.empty(members, K.dtype), np.empty(members, K.dtype)
    grad_K = np.empty((num_steps + 1) * LANES, K.dtype)
    while True:
        unit = take(counter)
        if unit >= num_parts * num_blocks:
            break
        part, block = unit // num_blocks, unit % num_blocks
        for tile in range(part * num_tiles // num_parts, (part + 1) * num_tiles // num_parts):
            lo, hi = tiles[tile], tiles[tile + 1]
            sparse = _similarities(inputs, lo, hi, block, Z, Y)
            grad_Z[: (hi - lo) * m * LANES] = 0
            grad_Y[: (hi - lo) * m * LANES] = 0
            twice[: (hi - lo) * LANES] = 0
            for v in range(lo, hi):
                at, start, n = v * num_blocks + block, ptr[v], ptr[v + 1] - ptr[v]
                if inputs.normalization >= 0:
                    combine_backward(
                        K, n, filter_size, inputs.step_weight, inputs.normalization, at, step,
                        grad_out, grad_K, 0, gradients.step_weight, unit * (num_steps + 1),
                    )  # fmt: skip
                else:
                    for p in range(num_steps + 1):
                        store(grad_K, p, load(grad_out, at + p * step))
                g0, g1, g2 = load(grad_K, 0), zeros(K), zeros(K)
                g0 += g0
                for a in range(start, start + n):
                    node = topology.node[a] - lo
                    store(twice, node, load(twice, node) + g0)
                if num_steps == 0 or n == 1:
                    continue
                g1 = load(grad_K, 1)
                if num_steps > 1:
                    g2 = load(grad_K, 2)
                    g2 += g2
                for b in range(0, m, 2):
                    gather(Y, b - lo * m, m, topology.node, start, n, T, 0)
                    propagate(T, 0, topology, v, V, 0)
                    for a in range(n):
                        x, y = load(V, 2 * a), load(V, 2 * a + 1)
                        row = (topology.node[start + a] - lo) * m + b
                        store(grad_Z, row, load(grad_Z, row) + g1 * x)
                        store(grad_Z, row + 1, load(grad_Z, row + 1) + g1 * y)
                        store(V, 2 * a, g2 * x + g1 * load(Z, row))
                        store(V, 2 * a + 1, g2 * y + g1 * load(Z, row + 1))
                    propagate(V, 0, topology, v, T, 0)
                    scatter(T, 0, topology.node, start, n, grad_Y, b - lo * m, m)
            for v in range(hi - lo):
                g0 = load(twice, v)
                for b in range(m):
                    row = v * m + b
                    store(grad_Z, row, load(grad_Z, row) + g0 * load(Z, row))
            if num_steps > 0:
                powers_backward(
                    Z, Y, _part(inputs.B, block, num_blocks), 0, 1, 0, 0, hi - lo, m, 1,
                    grad_Y, grad_Z, _part(gradients.B, unit, num_parts * num_blocks),
                )  # fmt: skip
            rows_x, to = (inputs.x, lo * d, hi - lo, d), unit * m * d
            if sparse:
                add_sparse_transposed_product(*rows_x, grad_Z, m, gradients.W, to)
            else:
                add_transposed_product(*rows_x, grad_Z, m, gradients.W, to)
            if gradients.x.size:
                product(
                    grad_Z, 0, hi - lo, m * LANES, inputs.W_by_feature,
                    block * width * m * LANES, width, gradients.x, (block * num_nodes + lo) * width,
                )  # fmt: skip


@jit  # type: ignore[untyped-decorator]
def _part(array: Array, i: int, count: int) -> Array:
    """Return part i of an array that has ``count`` parts of one size."""
    size = array.size // count
    return array[i * size : (i + 1) * size]


@jit  # type: ignore[untyped-decorator]
def _similarities(inputs: Inputs, lo: int, hi: int, block: int, Z: Array, Y: Array) -> bool:
    """Set Z = X W^T and Y = Z B for the nodes of a tile; returns whether X is mostly zero."""
    m, d, _ = inputs.shape
    num_blocks = inputs.B.size // (m * m * LANES)
    sparse = is_sparse(inputs.x, lo * d, hi - lo, d)
    if sparse:
        sparse_product(inputs.x, lo * d, hi - lo, d, inputs.W, block * m * d, m, Z, 0)
    else:
        product(inputs.x, lo * d, hi - lo, d, inputs.W, block * m * d, m, Z, 0)
    if inputs.step_weight.size > 1:
        powers(Z, _part(inputs.B, block, num_blocks), 0, 1, 0, hi - lo, m, 1, Y)
    return sparse
