"""Operations on the members of one ego-graph, two filter nodes and one block of filters at a time.

An array of rows holds two vectors a member, at 2 a and 2 a + 1: those of filter nodes b and b + 1.
Four registers of AVX hold them for float32, so a sum over neighbours is not stored before it ends.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

from kergnn.engine.lanes import inline, load, store, zeros

Array: TypeAlias = NDArray[Any]


@inline  # type: ignore[untyped-decorator]
def gather(
    table: Array, first: int, stride: int, index: Array, start: int, n: int, out: Array, to: int
) -> None:
    """Copy the nodes' rows of a table: node v has its two vectors at ``first + stride v``."""
    for a in range(n):
        row = first + stride * index[start + a]
        store(out, to + 2 * a, load(table, row))
        store(out, to + 2 * a + 1, load(table, row + 1))


@inline  # type: ignore[untyped-decorator]
def scatter(
    rows: Array, at: int, index: Array, start: int, n: int, table: Array, first: int, stride: int
) -> None:
    """Add the members' rows to those of their nodes in a table: the transpose of ``gather``."""
    for a in range(n):
        row = first + stride * index[start + a]
        store(table, row, load(table, row) + load(rows, at + 2 * a))
        store(table, row + 1, load(table, row + 1) + load(rows, at + 2 * a + 1))


@inline  # type: ignore[untyped-decorator]
def propagate(
    rows: Array,
    at: int,
    degree: Array,
    neighbor: Array,
    start: int,
    edge: int,
    n: int,
    out: Array,
    to: int,
) -> None:
    """Give every member the sum of its neighbours' rows: out = A rows.

    A member that is adjacent to all others gets the sum of all rows less its own: a clique costs
    as much as its nodes, not its edges.
    """
    total_x, total_y = zeros(rows), zeros(rows)
    for a in range(n):
        total_x += load(rows, at + 2 * a)
        total_y += load(rows, at + 2 * a + 1)
    for a in range(n):
        stop = edge + degree[start + a]
        if stop - edge == n - 1 and n > 2:
            x, y = total_x - load(rows, at + 2 * a), total_y - load(rows, at + 2 * a + 1)
        else:
            x, y = zeros(rows), zeros(rows)
            for e in range(edge, stop):
                row = at + 2 * neighbor[e]
                x += load(rows, row)
                y += load(rows, row + 1)
        store(out, to + 2 * a, x)
        store(out, to + 2 * a + 1, y)
        edge = stop
