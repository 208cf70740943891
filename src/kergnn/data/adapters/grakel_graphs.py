"""Graphs as GraKeL takes them: edges, then labels (or attributes) of nodes, then of edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kergnn.data.adapters.matrices import read_matrix
from kergnn.data.adapters.values import choose_names, read_columns, show
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.records import GraphRecord, natural_values, objects, split


def is_grakel(item: Any) -> bool:
    """Return whether something looks like a graph of GraKeL."""
    if type(item).__module__.startswith("grakel.") or isinstance(item, Mapping):
        return True
    if is_edge_list(item):
        return True
    if not isinstance(item, list | tuple) or not 1 <= len(item) <= 3:
        return False
    edges, *labels = item
    is_graph = isinstance(edges, Mapping | np.ndarray) or sp.issparse(edges) or is_edge_list(edges)
    return is_graph and all(label is None or _is_labels(label) for label in labels)


def is_edge_list(item: Any) -> bool:
    """Return whether something is a non-empty list or set of edges: tuples of two nodes."""
    if not isinstance(item, list | tuple | set | frozenset) or not item:
        return False
    return all(
        isinstance(edge, tuple)
        and len(edge) in (2, 3)
        and all(isinstance(node, str | int | np.integer) for node in edge[:2])
        for edge in item
    )


def read_grakel(graphs: Sequence[Any]) -> list[GraphRecord]:
    """Read graphs; strings and integers are node labels, numbers and lists are attributes.

    Nodes are sorted by their names, and an edge, or its label, counts whichever direction is given.
    """
    parts = [_parts(graph, f"graphs[{i}]") for i, graph in enumerate(graphs)]
    tables = [[{"label": value} for value in part.labels] for part in parts]
    # What is a label in one graph and an attribute in another is an attribute.
    names = choose_names(tables, None, None)
    records = []
    for i, (table, part) in enumerate(zip(tables, parts, strict=True)):
        columns = read_columns(table, part.nodes, *names, f"graphs[{i}]") if table else ({}, {})
        values = {"edge_label": objects(part.edge_labels)} if part.edge_labels else {}
        records.append(GraphRecord(len(part.nodes), part.edges, *columns, values))
    return records


def to_grakel(graphs: GraphSet) -> list[list[Any]]:
    """Return ``[edges, node labels]`` of every graph: a dictionary of dictionaries and another.

    A third has the values of edges, where there are any. Where nodes have no labels, their
    attributes stand in their place, as GraKeL takes them; of two labels, or labels and attributes,
    GraKeL can hold only one, so such sets are refused.
    """
    records = split(graphs)
    names = [natural_values(values) for values in graphs.label_names]
    attributes = 0 if graphs.attributes is None else 1
    if len(names) + attributes > 1:
        raise DataError(
            f"{graphs.name} has {len(names)} labels a node{' and attributes' * attributes}: GraKeL "
            "can hold one label, or attributes"
        )
    if len(graphs.edge_values) > 1:
        raise DataError(
            f"{graphs.name} has {', '.join(map(repr, graphs.edge_values))} of edges: GraKeL can "
            "hold one label of an edge"
        )
    made: list[list[Any]] = []
    for record in records:
        edges: dict[int, dict[int, float]] = {node: {} for node in range(record.num_nodes)}
        for a, b in record.edges:
            edges[int(a)][int(b)] = edges[int(b)][int(a)] = 1.0
        values: dict[int, Any] = {}
        for own in record.labels.values():
            translate = dict(zip(graphs.label_names[0], names[0], strict=True))
            values = {node: translate[label] for node, label in enumerate(own)}
        for array in record.attributes.values():
            values = dict(enumerate(array.tolist()))
        graph: list[Any] = [edges, values] if values else [edges]
        for column in record.edge_values.values():
            graph = [edges, values or None, _both_ways(record.edges, column.tolist())]
        made.append(graph)
    return made


def _both_ways(edges: Any, values: Sequence[Any]) -> dict[tuple[int, int], Any]:
    """Return the value of every edge in its own direction, and in the other if that has none."""
    pairs = reversed(list(zip(edges, values, strict=True)))  # of two entries the first counts
    own = {(int(a), int(b)): v for (a, b), v in pairs if v is not None}
    return {(b, a): v for (a, b), v in own.items()} | own


class _Parts(NamedTuple):
    """A graph of GraKeL: its nodes, its edges by their positions, labels of both, if any."""

    nodes: list[Any]
    edges: Any
    labels: list[Any]
    edge_labels: list[Any]


def _parts(graph: Any, where: str) -> _Parts:
    if type(graph).__module__.startswith("grakel."):
        own = deepcopy(graph)  # the format is changed in place
        own.change_format("dictionary")
        kinds = ("vertex", "edge")
        graph = [
            own.edge_dictionary,
            *(own.get_labels(k, purpose="dictionary", return_none=True) for k in kinds),
        ]
    if not isinstance(graph, list | tuple) or is_edge_list(graph):
        graph = [graph]
    edges, labels, edge_labels = (*graph, None, None)[:3]
    labels, edge_labels = labels or {}, edge_labels or {}
    if isinstance(edges, np.ndarray) or sp.issparse(edges):
        record = read_matrix(edges, where)
        nodes, named = list(range(record.num_nodes)), [(int(a), int(b)) for a, b in record.edges]
        own_labels = _labels_of(nodes, labels, where)
        return _Parts(nodes, record.edges, own_labels, _edge_labels_of(named, edge_labels, where))
    named = list(_edges(edges, where))
    found = {node for edge in named for node in edge} | set(labels)
    if isinstance(edges, Mapping) and not _is_pairs(edges):
        found |= set(edges)
    nodes = _ordered(found)
    position = {node: i for i, node in enumerate(nodes)}
    pairs = [(position[a], position[b]) for a, b in named]
    own_labels = _labels_of(nodes, labels, where)
    return _Parts(nodes, pairs, own_labels, _edge_labels_of(named, edge_labels, where))


def _labels_of(nodes: list[Any], labels: Mapping[Any, Any], where: str) -> list[Any]:
    unknown = [node for node in labels if node not in set(nodes)]
    if unknown:
        raise DataError(f"{where}: there is a label for {unknown[0]!r}, which is not a node")
    return [labels.get(node) for node in nodes] if labels else []


def _edge_labels_of(
    edges: list[tuple[Any, Any]], labels: Mapping[Any, Any], where: str
) -> list[Any]:
    known = set(edges) | {(b, a) for a, b in edges}
    unknown = [pair for pair in labels if pair not in known]
    if unknown:
        raise DataError(f"{where}: there is a label for {unknown[0]!r}, which is not an edge")
    return [labels.get((a, b), labels.get((b, a))) for a, b in edges] if labels else []


def _edges(edges: Any, where: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(edges, Mapping):
        weighted: Iterable[tuple[Any, Any, Any]] = ((*e[:2], (*e, 1)[2]) for e in edges)
    elif _is_pairs(edges):
        weighted = ((a, b, weight) for (a, b), weight in edges.items())
    else:
        for node, others in edges.items():
            if isinstance(others, str) or not isinstance(others, Iterable):
                raise DataError(
                    f"{where}: the neighbours of {node!r} are {show(others)}: they must be a list "
                    "or a dictionary; one graph with labels is [[edges, labels]]"
                )
        weighted = (
            (a, b, others[b] if isinstance(others, Mapping) else 1)
            for a, others in edges.items()
            for b in others
        )
    for a, b, weight in weighted:
        if weight != 1:
            raise DataError(
                f"{where}: edge {a!r}, {b!r} has weight {show(weight)}: edges have no weights here"
            )
        yield a, b


def _is_labels(item: Any) -> bool:
    """Return whether this may be labels by node, and is no graph itself."""
    return isinstance(item, Mapping) and not any(isinstance(v, Mapping) for v in item.values())


def _is_pairs(edges: Mapping[Any, Any]) -> bool:
    """Return whether the keys are edges: pairs, with weights as values."""
    return bool(edges) and all(isinstance(key, tuple) and len(key) == 2 for key in edges)


def _ordered(nodes: set[Any]) -> list[Any]:
    try:
        return sorted(nodes)
    except TypeError:  # of different types
        return sorted(nodes, key=lambda node: (type(node).__name__, str(node)))
