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
def propagate(rows: Array, at: int, topology: Any, v: int, out: Array, to: int) -> None:
    """Give every member of ego-graph v the sum of its neighbours' rows: out = A rows.

    A member that lists its strangers gets the sum of all rows less its own and theirs: a clique
    costs as much as its nodes, not its edges.
    """
    start, n = topology.ptr[v], topology.ptr[v + 1] - topology.ptr[v]
    total_x, total_y = zeros(rows), zeros(rows)
    if topology.dense[v]:
        for a in range(n):
            total_x += load(rows, at + 2 * a)
            total_y += load(rows, at + 2 * a + 1)
    first = topology.link_ptr[v]
    for a in range(n):
        links = topology.links[start + a]
        stop = first + max(links, -1 - links)
        x, y = zeros(rows), zeros(rows)
        for e in range(first, stop):
            row = at + 2 * topology.link[e]
            x += load(rows, row)
            y += load(rows, row + 1)
        if links < 0:
            x = total_x - load(rows, at + 2 * a) - x
            y = total_y - load(rows, at + 2 * a + 1) - y
        store(out, to + 2 * a, x)
        store(out, to + 2 * a + 1, y)
        first = stop
