"""Maximal cliques: groups of nodes that all know one another, and that nobody else could join.

In a network of people who worked together every film or paper makes a clique of its people.
"""

from __future__ import annotations

from array import array

import networkx as nx
import numpy as np
import torch
from torch import Tensor

# A graph of n nodes may have 3^(n/3) maximal cliques, more than any memory holds.
MOST_MEMBERS = 10_000_000


class CliqueError(ValueError):
    """A graph whose maximal cliques have more than ``MOST_MEMBERS`` members in all."""


def clique_members(edges: Tensor, num_nodes: int) -> Tensor:
    """Return every membership in a maximal clique: the node and the size of the clique (2, K).

    They are sorted; a node without neighbours is a clique of one.

    Args:
        edges: (2, E) both directions of every edge, once, without loops.
        num_nodes: number of nodes.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edges[:, edges[0] < edges[1]].T.tolist())
    member, sizes = array("q"), array("q")
    for clique in nx.find_cliques(graph):
        member.extend(clique)
        sizes.append(len(clique))
        if len(member) > MOST_MEMBERS:
            raise CliqueError(f"maximal cliques of more than {MOST_MEMBERS:,} members in all")
    node, size = np.array(member), np.array(sizes).repeat(sizes)
    order = np.lexsort((size, node))
    return torch.from_numpy(np.stack([node[order], size[order]]))


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
