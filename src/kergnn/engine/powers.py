r"""What the passes of ``rw``, ``drw`` and ``rw-step`` share: their inputs, units of work, tables.

A table holds :math:`Z_q = Z_{q-1} B`, q = 1 to Q, for the nodes of one tile and one block of
filters: vector b of node v is at ``((q - 1) * count + v - lo) * m + b``.
"""

from __future__ import annotations

from typing import NamedTuple

from kergnn.engine.lanes import LANES, bare, jit, load, store, zeros
from kergnn.engine.members import Array
from kergnn.engine.topology import Topology

# Nodes whose rows stay in the first-level cache while they are read for every pair of filter nodes.
CHUNK = 16


class Inputs(NamedTuple):
    """What both passes read; vectors of LANES filters, m even.

    Args:
        deep: whether the kernel is ``drw``.
        num_steps: P.
        m: number of filter nodes.
        Z: (N, blocks, m) similarities of nodes and filter nodes.
        B: (blocks, m, m) filter adjacencies.
        weight: (blocks, H + 1, m) weights of hops, of ``drw``.
    """

    deep: bool
    num_steps: int
    m: int
    Z: Array
    B: Array
    weight: Array


class Gradients(NamedTuple):
    """The gradient that comes in, K (P + 1, N, blocks), and what the backward pass fills.

    Z is like that of the inputs; of B and weight there is one for every tile.
    """

    K: Array
    Z: Array
    B: Array
    weight: Array


class Unit(NamedTuple):
    """A unit of work: the nodes ``lo`` up to ``hi`` of a tile, and a block of filters."""

    tile: int
    lo: int
    hi: int
    block: int
    num_blocks: int


@bare  # type: ignore[untyped-decorator]
def unit_of(number: int, topology: Topology, num_blocks: int) -> Unit:
    """Return a unit by its number."""
    tile = number // num_blocks
    lo, hi = topology.tiles[tile], topology.tiles[tile + 1]
    return Unit(tile, lo, hi, number % num_blocks, num_blocks)


@bare  # type: ignore[untyped-decorator]
def num_blocks_of(inputs: Inputs) -> int:
    """Return the number of blocks of filters."""
    return inputs.B.size // (inputs.m * inputs.m * LANES)


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
def clear(Z: Array, unit: Unit, m: int) -> None:
    """Set a unit's part of an array like Z to zero: it is in the cache then, where it is needed."""
    for v in range(unit.lo, unit.hi):
        for b in range(m):
            store(Z, (v * unit.num_blocks + unit.block) * m + b, zeros(Z))


@bare  # type: ignore[untyped-decorator]
def powers(inputs: Inputs, unit: Unit, Q: int, table: Array) -> None:
    """Fill the table with Z_q = Z_{q-1} B, q = 1 to Q, of the nodes of a tile."""
    Z, B, m = inputs.Z, inputs.B, inputs.m
    count, first = unit.hi - unit.lo, unit.block * m
    for q in range(1, Q + 1):
        for v in range(count):
            row = ((q - 1) * count + v) * m
            for c in range(0, m, 2):
                x, y = zeros(Z), zeros(Z)
                for b in range(m):
                    if q == 1:
                        z = load(Z, (unit.lo + v) * unit.num_blocks * m + first + b)
                    else:
                        z = load(table, row - count * m + b)
                    x += z * load(B, (first + b) * m + c)
                    y += z * load(B, (first + b) * m + c + 1)
                store(table, row + c, x)
                store(table, row + c + 1, y)


@bare  # type: ignore[untyped-decorator]
def powers_backward(
    inputs: Inputs, unit: Unit, Q: int, table: Array, grad_table: Array, gradients: Gradients
) -> None:
    """Carry the gradients of Z_Q to Z_1 on to Z and B."""
    B, m, count = inputs.B, inputs.m, unit.hi - unit.lo
    for q in range(Q, 0, -1):
        source, target, first, stride = table, grad_table, (q - 2) * count * m, m
        if q == 1:
            source, target = inputs.Z, gradients.Z
            first, stride = (unit.lo * unit.num_blocks + unit.block) * m, unit.num_blocks * m
        here = (q - 1) * count * m
        for begin in range(0, count, CHUNK):
            end = min(begin + CHUNK, count)
            for b in range(m):
                for c in range(0, m, 2):
                    x, y = zeros(table), zeros(table)
                    for v in range(begin, end):
                        z = load(source, first + v * stride + b)
                        x += z * load(grad_table, here + v * m + c)
                        y += z * load(grad_table, here + v * m + c + 1)
                    k = ((unit.tile * unit.num_blocks + unit.block) * m + b) * m + c
                    store(gradients.B, k, load(gradients.B, k) + x)
                    store(gradients.B, k + 1, load(gradients.B, k + 1) + y)
        for v in range(count):
            for b in range(0, m, 2):
                row = first + v * stride + b
                x, y = load(target, row), load(target, row + 1)
                for c in range(m):
                    z = load(grad_table, here + v * m + c)
                    x += z * load(B, (unit.block * m + b) * m + c)
                    y += z * load(B, (unit.block * m + b + 1) * m + c)
                store(target, row, x)
                store(target, row + 1, y)
