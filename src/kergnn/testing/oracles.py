"""Brute-force oracles: the formulas spelled out, as slowly and as plainly as possible.

They are differentiable torch: autograd through them gives the oracle of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import torch
from torch import Tensor

PairOracle: TypeAlias = Callable[..., Tensor]


def kronecker_kernel(A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int) -> Tensor:
    r"""Return :math:`s^T (B^p \otimes A^p) s` with :math:`s = \mathrm{vec}(X W^T)`, explicitly.

    Args:
        A: (n, n) adjacency of the graph.
        X: (n, d) its features.
        B: (m, m) adjacency of the filter.
        W: (m, d) its attributes.
        p: length of the walks.
    """
    s = (X @ W.T).T.reshape(-1)  # vec stacks columns
    product = torch.kron(torch.matrix_power(B, p), torch.matrix_power(A, p))
    return s @ product @ s


def deep_kronecker_kernel(
    A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int, weight: Tensor
) -> Tensor:
    r"""Return :math:`(\mathrm{vec}(w) \odot s)^T (B^p \otimes A^p) s`; ``weight`` is (n, m)."""
    s = (X @ W.T).T.reshape(-1)
    product = torch.kron(torch.matrix_power(B, p), torch.matrix_power(A, p))
    return (weight.T.reshape(-1) * s) @ product @ s


def walks(adjacency: Tensor, length: int) -> Tensor:
    """Return every walk of ``length`` steps, one row of nodes each: (number of walks, p + 1)."""
    nodes = range(adjacency.size(0))
    paths = [[node] for node in nodes]
    for _ in range(length):
        paths = [[*path, node] for path in paths for node in nodes if adjacency[path[-1], node]]
    return torch.tensor(paths, dtype=torch.long).reshape(-1, length + 1)


def enumerated_returns(adjacency: Tensor, length: int) -> Tensor:
    """The probability that a random walk from every node is back after ``length`` steps: (n,).

    Every walk is listed, with the product of one over the degrees that it leaves.
    """
    back = torch.zeros(len(adjacency), dtype=torch.float64)
    for walk in walks(adjacency, length):
        if walk[0] == walk[-1]:
            back[walk[0]] += 1 / adjacency[walk[:-1]].sum(1).double().prod()
    return back


def enumerated_cliques(adjacency: Tensor) -> list[tuple[int, ...]]:
    """All maximal cliques: every set of nodes is looked at, and everyone who could join it."""

    def is_clique(nodes: tuple[int, ...]) -> bool:
        return all(adjacency[a, b] for a, b in combinations(nodes, 2))

    count = len(adjacency)
    return [
        nodes
        for size in range(1, count + 1)
        for nodes in combinations(range(count), size)
        if is_clique(nodes)
        and not any(is_clique((*nodes, v)) for v in range(count) if v not in nodes)
    ]


def unfolded_color(adjacency: Tensor, labels: list[str], node: int, rounds: int) -> Any:
    """The Weisfeiler-Lehman colour of a node, as nested tuples: its own and those around it."""
    if rounds == 0:
        return labels[node]
    neighbors = adjacency[node].nonzero().flatten().tolist()
    around = [unfolded_color(adjacency, labels, u, rounds - 1) for u in neighbors]
    return unfolded_color(adjacency, labels, node, rounds - 1), tuple(sorted(around, key=repr))


def enumerated_walk_kernel(A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int) -> Tensor:
    """Sum over all pairs of p-step walks: the product of the similarities of their nodes at every
    step, times the weights of the filter edges walked over.
    """
    S = X @ W.T
    left = walks(A, p)
    right = walks(1 - torch.eye(B.size(0)), p)  # an edge of weight zero still has a derivative
    similarities = S[left.unsqueeze(1), right.unsqueeze(0)].prod(-1)
    return (similarities * B[right[:, :-1], right[:, 1:]].prod(-1)).sum()


def enumerated_contributions(
    kernel: str, A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int, weight: Tensor | None = None
) -> tuple[Tensor, Tensor, dict[tuple[int, ...], Tensor]]:
    """Share out every pair of p-step walks by hand, among nodes (n,), edges (n, n) and walks.

    Args:
        kernel: ``"rw"``, ``"rw-step"`` or ``"drw"``.
        A, X, B, W, p: see :func:`kronecker_kernel`.
        weight: (n, m) the weights of ``drw``.
    """
    S = X @ W.T
    nodes, edges, by_walk = X.new_zeros(len(A)), torch.zeros_like(A), {}
    others = walks(1 - torch.eye(len(B)), p).tolist()
    for walk in walks(A, p).tolist():
        total = X.new_zeros(())
        for other in others:
            matched = [(0, 0), (p, p)] if kernel != "rw-step" else [(q, q) for q in range(p + 1)]
            value = X.new_ones(()) if weight is None else weight[walk[0], other[0]]
            for q, r in matched:
                value = value * S[walk[q], other[r]]
            for b, c in pairwise(other):
                value = value * B[b, c]
            total = total + value
        places = [walk[0], walk[-1]] if kernel != "rw-step" else walk
        for a in places:
            nodes[a] += total / len(places)
        for a, b in pairwise(walk):
            edges[a, b] += total / p
        by_walk[tuple(walk)] = total
    return nodes, edges, by_walk


def ego_graph(
    edge_index: Tensor, num_nodes: int, node: int, num_hops: int = 1, max_nodes: int | None = None
) -> tuple[list[int], list[int], np.ndarray[Any, Any]]:
    """Return nodes, hop distances and dense adjacency of one ego-graph, by networkx."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((a, b) for a, b in edge_index.T.tolist() if a != b)
    distance = nx.single_source_shortest_path_length(graph, node, cutoff=num_hops)
    nodes = sorted(distance, key=lambda u: (distance[u], -graph.degree(u), u))[:max_nodes]
    adjacency = nx.to_numpy_array(graph, nodelist=nodes)
    return nodes, [distance[u] for u in nodes], adjacency


def brute_force(
    oracle: PairOracle,
    x: Tensor,
    edge_index: Tensor,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    num_hops: int = 1,
    max_nodes: int | None = None,
    hop_weight: Tensor | None = None,
) -> Tensor:
    """Evaluate a pairwise oracle on every ego-graph, filter and number of steps: (P + 1, N, D)."""
    values = []
    for v in range(x.size(0)):
        nodes, hops, dense = ego_graph(edge_index, x.size(0), v, num_hops, max_nodes)
        A = torch.from_numpy(dense).to(x.dtype)
        for i in range(adjacency.size(0)):
            extra = () if hop_weight is None else (hop_weight[i, hops],)
            values += [
                oracle(A, x[nodes], adjacency[i], attributes[i], p, *extra)
                for p in range(num_steps + 1)
            ]
    shape = (x.size(0), adjacency.size(0), num_steps + 1)
    flat = torch.stack(values) if values else x.new_zeros(0)
    return flat.reshape(shape).permute(2, 0, 1)


def dense_smoothing(
    h: Tensor,
    edge_index: Tensor,
    restart: float,
    num_steps: int = 10,
    num_hops: int = 1,
    max_nodes: int | None = None,
) -> Tensor:
    r"""Return smoothed logits (N, C) by powers of a dense matrix.

    .. math::
        Z = (1 - r)^K S^K H + r \sum_{k=0}^{K-1} (1 - r)^k S^k H, \qquad
        S_{va} = |G_v|^{-1/2} |G_a|^{-1/2} \text{ for } a \in G_v
    """
    count = len(h)
    egos = [ego_graph(edge_index, count, v, num_hops, max_nodes)[0] for v in range(count)]
    S = h.new_zeros(count, count)
    for v, nodes in enumerate(egos):
        for a in nodes:
            S[v, a] = (len(nodes) * len(egos[a])) ** -0.5
    powers = [torch.linalg.matrix_power((1 - restart) * S, k) @ h for k in range(num_steps + 1)]
    smoothed: Tensor = powers[-1] + restart * torch.stack(powers[:-1]).sum(0)
    return smoothed
