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

from kergnn.engine.lanes import (
    LANES,
    add_dot,
    bare,
    jit,
    load,
    load_rows,
    store,
    store_rows,
    take,
    zero_rows,
    zeros,
)  # fmt: skip
from kergnn.engine.members import (
    Array,
    Group,
    add_propagated,
    num_links,
    sum_everyone,
    sum_neighbors,
)
from kergnn.engine.powers import CHUNK, largest, zero
from kergnn.engine.products import (
    add_sparse_transposed_product,
    add_transposed_product,
    is_sparse,
    product,
    sparse_product,
)
from kergnn.engine.topology import Topology
from kergnn.engine.weighting import combine, combine_backward

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
        group: of how many filter nodes an ego-graph is gone through at once, as a tuple's length.
        normalization: how values are normalised, by number; -1 for values that are not summed.
    """

    x: Array
    W: Array
    B: Array
    W_by_feature: Array
    step_weight: Array
    shape: tuple[int, int, int]
    group: Group
    normalization: int


class Gradients(NamedTuple):
    """What the backward pass fills: of every block x, and of every part and block the others.

    Arrays without elements are those of inputs that need no gradient.
    """

    x: Array
    W: Array
    B: Array
    step_weight: Array


class Scratch(NamedTuple):
    """Vectors of one tile of nodes and one block of filters; ``member`` of one ego-graph."""

    Z: Array
    Y: Array
    grad_z: Array
    grad_y: Array
    node: Array
    member: Array
    step: Array


@jit  # type: ignore[untyped-decorator]
def forward(counter: Array, inputs: Inputs, topology: Topology, K: Array, out: Array) -> None:
    """Fill K (P + 1, N, blocks) and, unless values are not summed, out (N, blocks)."""
    m = inputs.shape[0]
    num_blocks, num_tiles = inputs.B.size // (m * m * LANES), topology.tiles.size - 1
    scratch = _scratch(inputs, topology, False)
    while True:
        unit = take(counter)
        if unit >= num_tiles * num_blocks:
            break
        tile, block = unit // num_blocks, unit % num_blocks
        _forward(inputs, topology, tile, block, num_blocks, scratch, K, out)


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
    m = inputs.shape[0]
    num_blocks, num_tiles = inputs.B.size // (m * m * LANES), topology.tiles.size - 1
    num_parts = min(PARTS, num_tiles)
    scratch = _scratch(inputs, topology, True)
    while True:
        unit = take(counter)
        if unit >= num_parts * num_blocks:
            break
        part, block = unit // num_blocks, unit % num_blocks
        for tile in range(part * num_tiles // num_parts, (part + 1) * num_tiles // num_parts):
            _backward(
                inputs, topology, tile, block, num_blocks, unit, scratch, K, grad_out, gradients
            )


@jit  # type: ignore[untyped-decorator]
def _scratch(inputs: Inputs, topology: Topology, gradients: bool) -> Scratch:
    """Allocate what a thread needs for the largest tile and the largest ego-graph."""
    dtype, rows = inputs.x.dtype, largest(topology.tiles) * LANES
    size, grad_size = rows * inputs.shape[0], rows * inputs.shape[0] if gradients else 0
    members = len(inputs.group) * largest(topology.ptr) * LANES
    return Scratch(
        np.empty(size, dtype), np.empty(size, dtype),
        np.empty(grad_size, dtype), np.empty(grad_size, dtype),
        np.empty(rows, dtype), np.empty(members, dtype),
        np.empty(inputs.step_weight.size * LANES, dtype),
    )  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _forward(
    inputs: Inputs,
    topology: Topology,
    tile: int,
    block: int,
    num_blocks: int,
    scratch: Scratch,
    K: Array,
    out: Array,
) -> None:
    """Do one tile of nodes and one block of filters."""
    m, _, filter_size = inputs.shape
    group, g, num_steps = inputs.group, len(inputs.group), inputs.step_weight.size - 1
    lo, hi = topology.tiles[tile], topology.tiles[tile + 1]
    step = (topology.ptr.size - 1) * num_blocks
    Z, Y, square = scratch.Z, scratch.Y, scratch.node
    _similarities(inputs, lo, hi, block, num_blocks, Z, Y)
    for v in range(hi - lo):
        total = zeros(Z)
        for b in range(0, m, g):
            z = load_rows(Z, v * m + b, group)
            total = add_dot(total, z, z)
        store(square, v, total)
    for v in range(lo, hi):
        start, stop, at = topology.ptr[v], topology.ptr[v + 1], v * num_blocks + block
        K0, K1, K2 = zeros(Z), zeros(Z), zeros(Z)
        for a in range(start, stop):
            K0 += load(square, topology.node[a] - lo)
        if num_steps > 0 and stop - start > 1:
            for b in range(0, m, g):
                first, link = b - lo * m, topology.link_ptr[v]
                everyone = sum_everyone(Y, first, m, topology, v, group)
                for a in range(start, stop):
                    V = sum_neighbors(Y, first, m, topology, v, a, link, everyone, group)
                    z = load_rows(Z, first + m * topology.node[a], group)
                    K1 = add_dot(K1, V, z)
                    K2 = add_dot(K2, V, V)
                    link += num_links(topology.links[a])
        store(K, at, K0)
        if num_steps > 0:
            store(K, at + step, K1)
        if num_steps > 1:
            store(K, at + 2 * step, K2)
        if inputs.normalization >= 0:
            pairs = (stop - start) * filter_size
            combine(K, pairs, inputs.step_weight, inputs.normalization, at, step, out)


@bare  # type: ignore[untyped-decorator]
def _backward(
    inputs: Inputs,
    topology: Topology,
    tile: int,
    block: int,
    num_blocks: int,
    unit: int,
    scratch: Scratch,
    K: Array,
    grad_out: Array,
    gradients: Gradients,
) -> None:
    """Do one tile of nodes and one block of filters; the sums of a unit are its own."""
    m, d, filter_size = inputs.shape
    group, g, num_steps = inputs.group, len(inputs.group), inputs.step_weight.size - 1
    lo, hi = topology.tiles[tile], topology.tiles[tile + 1]
    num_nodes, width = topology.ptr.size - 1, (d + LANES - 1) // LANES
    step = num_nodes * num_blocks
    Z, Y, twice, T, grad_K = scratch.Z, scratch.Y, scratch.node, scratch.member, scratch.step
    grad_Z, grad_Y = scratch.grad_z, scratch.grad_y
    sparse = _similarities(inputs, lo, hi, block, num_blocks, Z, Y)
    zero(grad_Z, (hi - lo) * m)
    zero(grad_Y, (hi - lo) * m)
    zero(twice, hi - lo)
    for v in range(lo, hi):
        start, stop, at = topology.ptr[v], topology.ptr[v + 1], v * num_blocks + block
        if inputs.normalization >= 0:
            combine_backward(
                K, (stop - start) * filter_size, inputs.step_weight, inputs.normalization,
                at, step, grad_out, grad_K, gradients.step_weight, unit * (num_steps + 1),
            )  # fmt: skip
        else:
            for p in range(num_steps + 1):
                store(grad_K, p, load(grad_out, at + p * step))
        g0, g1, g2 = load(grad_K, 0), zeros(Z), zeros(Z)
        g0 += g0
        for a in range(start, stop):
            node = topology.node[a] - lo
            store(twice, node, load(twice, node) + g0)
        if num_steps == 0 or stop - start == 1:
            continue
        g1 = load(grad_K, 1)
        if num_steps > 1:
            g2 = load(grad_K, 2)
            g2 += g2
        for b in range(0, m, g):
            first, link = b - lo * m, topology.link_ptr[v]
            everyone = sum_everyone(Y, first, m, topology, v, group)
            for a in range(start, stop):
                row = first + m * topology.node[a]
                V = sum_neighbors(Y, first, m, topology, v, a, link, everyone, group)
                store_rows(grad_Z, row, load_rows(grad_Z, row, group) + g1 * V)
                store_rows(T, g * (a - start), g2 * V + g1 * load_rows(Z, row, group))
                link += num_links(topology.links[a])
            add_propagated(T, topology, v, group, grad_Y, first, m)
    _mix_backward(Z, twice, inputs.B, block * m * m, hi - lo, m, group,
                  grad_Y, grad_Z, gradients.B, unit * m * m)  # fmt: skip
    to = unit * m * d
    if sparse:
        add_sparse_transposed_product(inputs.x, lo * d, hi - lo, d, grad_Z, m, gradients.W, to)
    else:
        add_transposed_product(inputs.x, lo * d, hi - lo, d, grad_Z, m, gradients.W, to)
    if gradients.x.size:
        product(
            grad_Z, 0, hi - lo, m * LANES, inputs.W_by_feature, block * width * m * LANES, width,
            gradients.x, (block * num_nodes + lo) * width,
        )  # fmt: skip


@bare  # type: ignore[untyped-decorator]
def _similarities(
    inputs: Inputs, lo: int, hi: int, block: int, num_blocks: int, Z: Array, Y: Array
) -> bool:
    """Set Z = X W^T and Y = Z B for the nodes of a tile; returns whether X is mostly zero."""
    m, d, _ = inputs.shape
    sparse: bool = is_sparse(inputs.x, lo * d, hi - lo, d)
    if sparse:
        sparse_product(inputs.x, lo * d, hi - lo, d, inputs.W, block * m * d, m, Z, 0)
    else:
        product(inputs.x, lo * d, hi - lo, d, inputs.W, block * m * d, m, Z, 0)
    if inputs.step_weight.size > 1:
        _mix(Z, inputs.B, block * m * m, hi - lo, m, inputs.group, Y)
    return sparse


@bare  # type: ignore[untyped-decorator]
def _mix(Z: Array, B: Array, at: int, count: int, m: int, group: Group, Y: Array) -> None:
    """Set Y = Z B, for the adjacencies from ``at`` on."""
    for v in range(count):
        for c in range(0, m, len(group)):
            total = zero_rows(Z, group)
            for b in range(m):
                total += load(Z, v * m + b) * load_rows(B, at + b * m + c, group)
            store_rows(Y, v * m + c, total)


@bare  # type: ignore[untyped-decorator]
def _mix_backward(
    Z: Array,
    twice: Array,
    B: Array,
    at: int,
    count: int,
    m: int,
    group: Group,
    grad_Y: Array,
    grad_Z: Array,
    grad_B: Array,
    to: int,
) -> None:
    r"""Add :math:`\bar B = Z^T \bar Y` and :math:`\bar Z = 2 g_0 Z + \bar Y B`; B is symmetric."""
    g = len(group)
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for b in range(m):
            for c in range(0, m, g):
                total = load_rows(grad_B, to + b * m + c, group)
                for v in range(begin, end):
                    total += load(Z, v * m + b) * load_rows(grad_Y, v * m + c, group)
                store_rows(grad_B, to + b * m + c, total)
        for v in range(begin, end):
            g0 = load(twice, v)
            for b in range(0, m, g):
                total = load_rows(grad_Z, v * m + b, group)
                total += g0 * load_rows(Z, v * m + b, group)
                for c in range(m):
                    total += load(grad_Y, v * m + c) * load_rows(B, at + c * m + b, group)
                store_rows(grad_Z, v * m + b, total)
