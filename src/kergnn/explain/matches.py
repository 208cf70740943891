"""Where the filters are found in the data, and what shapes they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import torch
from torch import Tensor

from kergnn.batches import GraphBatches, ranges
from kergnn.data import GraphSet
from kergnn.explain.filters import filter_layers, layer_values
from kergnn.nn import KerGNN
from kergnn.prediction import chunks


@dataclass(frozen=True)
class Match:
    """An ego-graph that a filter responds to.

    Args:
        node: its centre, as a node of the whole set.
        value: the kernel value.
    """

    node: int
    value: float


@dataclass(frozen=True)
class Shape:
    """What a small graph looks like.

    Args:
        kind: ``empty``, ``path``, ``star``, ``tree``, ``ring``, ``ring with tails``, ``clique``,
            ``parts`` (not connected) or ``other``.
        size: number of nodes; of a ring with tails those of the ring.
        rings: number of independent rings.
    """

    kind: str
    size: int
    rings: int = 0

    def __str__(self) -> str:
        if self.kind == "other":
            return f"{self.size} nodes, {self.rings} rings"
        return {
            "empty": "no edge",
            "star": f"star of {self.size - 1} leaves",
            "ring with tails": f"ring of {self.size} with tails",
            "parts": f"{self.size} nodes, not connected",
        }.get(self.kind, f"{self.kind} of {self.size}")


def shape(graph: nx.Graph) -> Shape:
    """Return what a small graph looks like.

    An edge is a path of two nodes, a triangle a ring of three; a star has at least three leaves, a
    clique at least four nodes.
    """
    n, e = graph.number_of_nodes(), graph.number_of_edges()
    if e == 0:
        return Shape("empty", n)
    rings = e - n + nx.number_connected_components(graph)
    if not nx.is_connected(graph):
        return Shape("parts", n, rings)
    degrees = sorted(degree for _, degree in graph.degree())
    if rings == 0:
        if degrees[-1] <= 2:
            return Shape("path", n)
        return Shape("star" if degrees[-1] == n - 1 else "tree", n)
    if degrees[0] == degrees[-1] == 2:
        return Shape("ring", n, 1)
    if 2 * e == n * (n - 1):
        return Shape("clique", n, rings)
    if rings == 1:
        return Shape("ring with tails", nx.k_core(graph, 2).number_of_nodes(), 1)
    return Shape("other", n, rings)


def count_shapes(graphs: Sequence[nx.Graph]) -> dict[str, int]:
    """Return how many graphs are of each kind, and how many contain a ring at all.

    ``contains ring`` counts the graphs with at least one ring, ``contains star`` those in which a
    node has at least three neighbours that are not joined among themselves.
    """
    shapes = [shape(graph) for graph in graphs]
    counts = dict(Counter(one.kind for one in shapes))
    counts["contains ring"] = sum(one.rings > 0 for one in shapes)
    counts["contains star"] = sum(_has_star(graph) for graph in graphs)
    return counts


def best_matches(
    model: KerGNN, batches: GraphBatches, which: Tensor, count: int = 3
) -> list[list[list[Match]]]:
    """Return, by layer and filter, the ego-graphs with the highest kernel values.

    Isomorphic ego-graphs have equal values: of several with the same value the first is returned.

    Args:
        model: a trained :class:`~kergnn.KerGNN`.
        batches: the graphs, with features and ego-graphs.
        which: positions of the graphs to look at.
        count: how many ego-graphs for each filter.
    """
    layers = filter_layers(model)
    found: list[list[list[Match]]] = [[[] for _ in range(c.out_channels)] for c in layers]
    for chunk in chunks(which, batches.size.cpu()):
        chunk = chunk.to(batches.x.device)
        nodes = ranges(batches.ptr[chunk], batches.size[chunk]).tolist()
        _, values = layer_values(model, batches(chunk))
        for layer, table in enumerate(values):
            order = table.argsort(dim=0, descending=True, stable=True)
            for i, matches in enumerate(found[layer]):
                column = table[:, i]
                _add_best(matches, column, order[:, i], nodes, count)
    return found


def occurs(pattern: nx.Graph, graphs: Iterable[nx.Graph], by: str | None = None) -> bool:
    """Return whether a graph occurs as a subgraph, induced or not, in one of several.

    Args:
        pattern: a small graph, such as a filter after thresholding.
        graphs: the graphs to look in.
        by: name of a node attribute, such as ``"label"``, that must be equal too.
    """
    return any(_contains(graph, pattern, by) for graph in graphs)


def count_occurrences(pattern: nx.Graph, graphs: Iterable[nx.Graph], by: str | None = None) -> int:
    """Return the number of graphs that contain a pattern, see :func:`occurs`."""
    return sum(_contains(graph, pattern, by) for graph in graphs)


def structures(graphs: GraphSet, which: Sequence[int]) -> list[nx.Graph]:
    """Return some graphs of a set, with their nodes counted from 0 and the first ``label``."""
    edges = graphs.simple_edges
    start = torch.searchsorted(edges[0].contiguous(), graphs.ptr)
    made = []
    for g in which:
        first, last = int(graphs.ptr[g]), int(graphs.ptr[g + 1])
        graph = nx.Graph()
        graph.add_nodes_from(range(last - first))
        pairs = edges[:, int(start[g]) : int(start[g + 1])] - first
        graph.add_edges_from(pairs.T.tolist())
        if graphs.labels is not None:
            codes = graphs.labels[first:last, 0].tolist()
            labels = {i: graphs.label_names[0][code] for i, code in enumerate(codes)}
            nx.set_node_attributes(graph, labels, "label")
        made.append(graph)
    return made


def _add_best(
    matches: list[Match], column: Tensor, order: Tensor, nodes: list[int], count: int
) -> None:
    """Merge the best of one piece into the best so far, each value once."""
    best = list(matches)
    added = 0
    previous = None
    for row in order.tolist():
        value = float(column[row])
        if previous is not None and _equal(value, previous):
            continue
        previous = value
        if not any(_equal(value, match.value) for match in matches):
            best.append(Match(nodes[row], value))
        added += 1
        if added == count:
            break
    best.sort(key=lambda match: -match.value)
    matches[:] = best[:count]


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1e-6)


def _has_star(graph: nx.Graph) -> bool:
    for node in graph:
        around = graph.subgraph(graph[node])
        if around.number_of_nodes() < 3:
            continue
        apart = nx.complement(around)
        if max(map(len, nx.find_cliques(apart))) >= 3:
            return True
    return False


def _contains(graph: nx.Graph, pattern: nx.Graph, by: str | None) -> bool:
    """Place the nodes of the pattern one after the other, each beside those it is joined to.

    With patterns of a filter's size this is many times faster than a general matcher.
    """
    if not _may_contain(graph, pattern):
        return False
    parts = list(nx.connected_components(pattern))
    # A part that is nowhere would be looked for beside every place of the others.
    if len(parts) > 1 and not all(_contains(graph, pattern.subgraph(p), by) for p in parts):
        return False
    around = {node: set(graph[node]) for node in graph}
    order = _search_order(pattern)
    place: dict[Any, Any] = {}

    def extend(number: int) -> bool:
        if number == len(order):
            return True
        node, before = order[number]
        free = set.intersection(*(around[place[b]] for b in before)) if before else set(around)
        for spot in free.difference(place.values()):
            if len(around[spot]) < pattern.degree[node]:
                continue
            if by is not None and graph.nodes[spot].get(by) != pattern.nodes[node].get(by):
                continue
            place[node] = spot
            if extend(number + 1):
                return True
            del place[node]
        return False

    return extend(0)


def _search_order(pattern: nx.Graph) -> list[tuple[Any, list[Any]]]:
    """Return the nodes, each with its neighbours before it: those with the most come first."""
    order: list[tuple[Any, list[Any]]] = []
    rest = list(pattern)
    while rest:
        done = {node for node, _ in order}
        node = max(rest, key=lambda n: (len(done.intersection(pattern[n])), pattern.degree[n]))
        order.append((node, [other for other in pattern[node] if other in done]))
        rest.remove(node)
    return order


def _may_contain(graph: nx.Graph, pattern: nx.Graph) -> bool:
    """Compare sizes and degrees, which no embedding can lower."""
    if pattern.number_of_nodes() > graph.number_of_nodes():
        return False
    if pattern.number_of_edges() > graph.number_of_edges():
        return False
    small = sorted((degree for _, degree in pattern.degree()), reverse=True)
    large = sorted((degree for _, degree in graph.degree()), reverse=True)
    return all(a <= b for a, b in zip(small, large, strict=False))
