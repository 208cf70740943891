"""Operations on the members of one ego-graph, some filter nodes and one block of filters at a time.

An array of rows holds a group of vectors for every member a, from ``a * len(group)`` on: those of
filter nodes b, b + 1, ... So a sum over neighbours stays in registers, and an ego-graph is gone
through once for all of the group.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

from kergnn.engine.lanes import inline, load_rows, store_rows, zero_rows

Array: TypeAlias = NDArray[Any]
Group: TypeAlias = tuple[int, ...]

PAIR: Group = (0, 0)


def group_of(m: int) -> Group:
    """Return the largest group that m filter nodes can be cut into and registers can hold.

    Its length is what counts; six vectors are twelve of the 16 registers of AVX for float32.
    """
    return next((0,) * g for g in (6, 4, 2, 1) if m % g == 0)


@inline  # type: ignore[untyped-decorator]
def gather(
    table: Array,
    first: int,
    stride: int,
    topology: Any,
    v: int,
    group: Group,
    out: Array,
    to: int,
) -> None:
    """Copy the members' rows of a table: node u has its vectors from ``first + stride u`` on."""
    start = topology.ptr[v]
    for a in range(topology.ptr[v + 1] - start):
        row = first + stride * topology.node[start + a]
        store_rows(out, to + len(group) * a, load_rows(table, row, group))


@inline  # type: ignore[untyped-decorator]
def scatter(
    rows: Array,
    at: int,
    topology: Any,
    v: int,
    group: Group,
    table: Array,
    first: int,
    stride: int,
) -> None:
    """Add the members' rows to those of their nodes in a table: the transpose of ``gather``."""
    start = topology.ptr[v]
    for a in range(topology.ptr[v + 1] - start):
        row = first + stride * topology.node[start + a]
        here = load_rows(table, row, group) + load_rows(rows, at + len(group) * a, group)
        store_rows(table, row, here)


@inline  # type: ignore[untyped-decorator]
def num_links(links: int) -> int:
    """Return how many members are listed, be they neighbours or strangers."""
    return max(links, -1 - links)


@inline  # type: ignore[untyped-decorator]
def sum_everyone(table: Array, first: int, stride: int, topology: Any, v: int, group: Group) -> Any:
    """Return the sum over ego-graph v, if it is needed to leave out strangers."""
    everyone = zero_rows(table, group)
    if topology.dense[v]:
        for i in range(topology.ptr[v], topology.ptr[v + 1]):
            everyone += load_rows(table, first + stride * topology.node[i], group)
    return everyone


@inline  # type: ignore[untyped-decorator]
def sum_neighbors(
    table: Array,
    first: int,
    stride: int,
    topology: Any,
    v: int,
    a: int,
    link: int,
    everyone: Any,
    group: Group,
) -> Any:
    """Return the sum over the neighbours of member a of ego-graph v, whose links begin at ``link``.

    A member that lists its strangers gets the sum of all rows less its own and theirs: a clique
    costs as much as its nodes, not its edges.
    """
    total = zero_rows(table, group)
    for e in range(link, link + num_links(topology.links[a])):
        node = topology.node[topology.ptr[v] + topology.link[e]]
        total += load_rows(table, first + stride * node, group)
    if topology.links[a] < 0:
        total = everyone - load_rows(table, first + stride * topology.node[a], group) - total
    return total


@inline  # type: ignore[untyped-decorator]
def propagate(
    rows: Array, at: int, topology: Any, v: int, group: Group, out: Array, to: int
) -> None:
    """Give every member of ego-graph v the sum of its neighbours' rows: out = A rows."""
    start, g, link = topology.ptr[v], len(group), topology.link_ptr[v]
    everyone = zero_rows(rows, group)
    if topology.dense[v]:
        for a in range(topology.ptr[v + 1] - start):
            everyone += load_rows(rows, at + g * a, group)
    for a in range(topology.ptr[v + 1] - start):
        links = topology.links[start + a]
        total = zero_rows(rows, group)
        for e in range(link, link + num_links(links)):
            total += load_rows(rows, at + g * topology.link[e], group)
        if links < 0:
            total = everyone - load_rows(rows, at + g * a, group) - total
        store_rows(out, to + g * a, total)
        link += num_links(links)


@inline  # type: ignore[untyped-decorator]
def add_propagated(
    rows: Array, topology: Any, v: int, group: Group, table: Array, first: int, stride: int
) -> None:
    """Do ``propagate`` and ``scatter`` in one go."""
    start, g, link = topology.ptr[v], len(group), topology.link_ptr[v]
    everyone = zero_rows(rows, group)
    if topology.dense[v]:
        for a in range(topology.ptr[v + 1] - start):
            everyone += load_rows(rows, g * a, group)
    for a in range(topology.ptr[v + 1] - start):
        links, row = topology.links[start + a], first + stride * topology.node[start + a]
        total = zero_rows(rows, group)
        for e in range(link, link + num_links(links)):
            total += load_rows(rows, g * topology.link[e], group)
        if links < 0:
            total = everyone - load_rows(rows, g * a, group) - total
        store_rows(table, row, load_rows(table, row, group) + total)
        link += num_links(links)
