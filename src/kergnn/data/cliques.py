"""Maximal cliques: groups of nodes that all know one another, and that nobody else could join.

In a network of people who worked together every film or paper makes a clique of its people.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn._compile import compiled

Array: TypeAlias = NDArray[Any]

# A graph of n nodes may have 3^(n/3) maximal cliques, more than any memory holds.
MOST_MEMBERS = 10_000_000
# Room of the lists at first; they grow.
_ROOM = 1024


class CliqueError(ValueError):
    """A graph whose maximal cliques have more than ``MOST_MEMBERS`` members in all."""


def clique_members(edges: Tensor, num_nodes: int) -> Tensor:
    """Return every membership in a maximal clique: the node and the size of the clique (2, K).

    They are sorted; a node without neighbours is a clique of one.

    Args:
        edges: (2, E) both directions of every edge, once, without loops.
        num_nodes: number of nodes.
    """
    source, target = edges.numpy()
    degree = np.bincount(source, minlength=num_nodes)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    # By degree, so that few neighbours come later: at most sqrt(E), whatever the largest degree.
    order = np.argsort(degree, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(num_nodes)
    neighbor = target[np.lexsort((rank[target], source))]
    earlier = np.bincount(source[rank[target] < rank[source]], minlength=num_nodes)
    node, size = _find(indptr, indptr[:-1] + earlier, neighbor, MOST_MEMBERS)
    if len(node) > MOST_MEMBERS:
        raise CliqueError(f"maximal cliques of more than {MOST_MEMBERS:,} members in all")
    by_node = np.lexsort((size, node))
    return torch.from_numpy(np.stack([node[by_node], size[by_node]]))


@compiled
def _find(indptr: Array, start: Array, neighbor: Array, most: int) -> tuple[Array, Array]:
    """List the maximal cliques, those whose first node by rank is v for every v in turn.

    The algorithm of Bron and Kerbosch with the pivots of Tomita, Tanaka and Takahashi (2006),
    without recursion. Neighbours of v are numbered from 0, those that come later by rank first;
    only these can be in a clique whose first node is v. It stops beyond ``most`` members.

    Args:
        indptr: (N + 1,) where the neighbours of every node begin.
        start: (N,) where those begin that come later than the node.
        neighbor: (E,) the neighbours, sorted by rank.
        most: largest number of members that is not refused.

    Returns:
        The node and the size of the clique of every membership.
    """
    node, size = np.empty(_ROOM, dtype=np.int64), np.empty(_ROOM, dtype=np.int64)
    stack, count = np.empty(_ROOM, dtype=np.int64), 0
    number = np.full(len(start), -1, dtype=np.int64)
    for v in range(len(start)):
        local, knows = _neighborhood(indptr, start, neighbor, number, v)
        num_later = len(knows)

        # A level of the search has three lists on the stack: nodes that know the whole clique and
        # must not join it, since what they lead to is listed; nodes that may join; and those of
        # the latter that are still to be tried. Where each begins, and where the last ends:
        banned = np.zeros(num_later + 1, dtype=np.int64)
        free, trial, end = banned.copy(), banned.copy(), banned.copy()
        stack = _with_room(stack, 2 * len(local))
        free[0], trial[0] = len(local) - num_later, len(local)
        stack[: free[0]] = np.arange(num_later, len(local))
        stack[free[0] : trial[0]] = np.arange(num_later)
        clique = np.empty(num_later + 1, dtype=np.int64)
        clique[0] = v
        level, entered = 0, True
        while level >= 0:
            if entered:
                entered = False
                end[level] = trial[level]
                if trial[level] == banned[level]:  # nobody else knows all of them
                    before, count = count, count + level + 1
                    node, size = _with_room(node, count), _with_room(size, count)
                    node[before:count] = clique[: level + 1]
                    size[before:count] = level + 1
                    if count > most:
                        return node[:count], size[:count]
                else:
                    end[level] = _put_trials(stack, banned[level], free[level], trial[level], knows)
            if end[level] == trial[level]:
                level -= 1
                continue
            end[level] -= 1
            stack = _with_room(stack, end[level] + 2 * (trial[level] - banned[level]))
            chosen = stack[end[level]]
            _open_level(stack, banned, free, trial, level, end[level], knows)
            level += 1
            clique[level] = local[chosen]
            entered = True
    return node[:count], size[:count]


@compiled
def _with_room(array: Array, length: int) -> Array:
    """Return the array, or a copy that is at least twice as long, if it is shorter than that."""
    if length <= len(array):
        return array
    return np.concatenate((array, np.empty(length, dtype=np.int64)))


@compiled
def _open_level(
    stack: Array, banned: Array, free: Array, trial: Array, level: int, top: int, knows: Array
) -> None:
    """Put the lists of the next level on the stack: who of this level knows the chosen one.

    The chosen one, who is at ``top``, joins the clique, and must not join at this level any more.
    """
    chosen, place = stack[top], free[level]
    banned[level + 1] = top
    for i in range(banned[level], free[level]):
        if knows[chosen, stack[i]]:
            stack[top] = stack[i]
            top += 1
    free[level + 1] = top
    for i in range(free[level], trial[level]):
        if knows[chosen, stack[i]]:
            stack[top] = stack[i]
            top += 1
        elif stack[i] == chosen:
            place = i
    trial[level + 1] = top
    stack[place], stack[free[level]] = stack[free[level]], chosen
    free[level] += 1


@compiled
def _neighborhood(
    indptr: Array, start: Array, neighbor: Array, number: Array, v: int
) -> tuple[Array, Array]:
    """Return the neighbours of v, later ones first, and whom each later one knows of them.

    ``number`` is -1 everywhere, before and after. Every edge among the neighbours is met at its
    earlier end, so that nobody walks through all neighbours of a hub.
    """
    later = neighbor[start[v] : indptr[v + 1]]
    local = np.concatenate((later, neighbor[indptr[v] : start[v]]))
    number[local] = np.arange(len(local))
    knows = np.zeros((len(later), len(local)), dtype=np.bool_)
    for i in range(len(local)):
        for other in neighbor[start[local[i]] : indptr[local[i] + 1]]:
            j = number[other]
            if 0 <= j < len(later):
                knows[j, i] = True
                if i < len(later):
                    knows[i, j] = True
    number[local] = -1
    return local, knows


@compiled
def _put_trials(stack: Array, banned: int, free: int, trial: int, knows: Array) -> int:
    """Put those who are to be tried on the stack, from ``trial`` on, and return where they end.

    They are the ones who do not know the pivot: a maximal clique has it, or one of them. The
    pivot is who knows most of those who may join.
    """
    present = stack[banned:trial]
    knowing = np.zeros(knows.shape[1], dtype=np.int64)
    for w in stack[free:trial]:
        for u in present:
            knowing[u] += knows[w, u]
    pivot = present[0]
    for u in present:
        if knowing[u] > knowing[pivot]:
            pivot = u
    end = trial
    for w in stack[free:trial]:
        if not knows[w, pivot]:
            stack[end] = w
            end += 1
    return end


def clique_shares(members: Tensor, num_nodes: int, limits: list[int]) -> Tensor:
    r"""Return every node's share of the maximal cliques of each bin of sizes.

    .. math::
        x_{v,b} = \sum_{C \ni v,\ |C| \in b} \frac{1}{|C|},

    so that the sum over the nodes of a graph is its number of maximal cliques of these sizes.

    Args:
        members: (2, K) from :func:`clique_members`.
        num_nodes: number of nodes N.
        limits: where every one of the B bins begins, from 1 on; the last one is open.

    Returns:
        (N, B) of float64.
    """
    node, size = members.numpy()
    cell = node * len(limits) + np.searchsorted(limits, size, side="right") - 1
    share = np.bincount(cell, weights=1 / size, minlength=num_nodes * len(limits))
    return torch.from_numpy(share.reshape(num_nodes, len(limits)))
