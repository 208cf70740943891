"""networkx graphs, with attributes of nodes and edges by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx

from kergnn.data.adapters.values import Names, choose_names, read_columns
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.records import GraphRecord, class_values, natural_values, objects, split


def read_networkx(
    graphs: Sequence[nx.Graph], node_labels: Names, node_attributes: Names, task: str
) -> list[GraphRecord]:
    """Read graphs; their nodes are counted in the order in which the graph lists them."""
    for i, graph in enumerate(graphs):
        if graph.is_directed():
            raise DataError(
                f"graphs[{i}] is directed: edges have no direction here; graph.to_undirected() "
                "drops it"
            )
    tables = [[_named(values, task) for _, values in graph.nodes(data=True)] for graph in graphs]
    labels, attributes = choose_names(tables, node_labels, node_attributes)
    records = []
    for i, (graph, table) in enumerate(zip(graphs, tables, strict=True)):
        columns = read_columns(table, graph, labels, attributes, f"graphs[{i}]")
        position = {node: k for k, node in enumerate(graph)}
        edges = [(position[a], position[b]) for a, b in graph.edges()]
        name = None if graph.graph.get("id") is None else str(graph.graph["id"])
        records.append(GraphRecord(len(position), edges, *columns, _edge_values(graph), name))
    return records


def networkx_classes(graphs: Sequence[nx.Graph], task: str) -> list[Any]:
    """Return ``graph.graph["y"]`` of all graphs, or the ``"y"`` of all nodes."""
    if task == "graph":
        return [graph.graph.get("y") for graph in graphs]
    return [values.get("y") for graph in graphs for _, values in graph.nodes(data=True)]


def to_networkx(graphs: GraphSet) -> list[nx.Graph]:
    """Return the graphs as networkx graphs with the nodes 0, 1, 2, ...

    Nodes have their labels and attributes by name (``label`` and ``attributes`` where they have no
    names); labels and classes that are all integers are integers. So have edges; of two entries
    for one edge the first counts. The class is ``graph.graph["y"]`` or, where nodes have classes,
    their ``"y"``. An id is ``graph.graph["id"]``.
    """
    records = split(graphs)
    made, classes = [], natural_values(class_values(graphs))
    vocabulary = _vocabulary(graphs, records)
    first = 0
    for g, record in enumerate(records):
        graph = nx.Graph() if record.id is None else nx.Graph(id=record.id)
        graph.add_nodes_from(range(record.num_nodes))
        edges = [(int(a), int(b)) for a, b in record.edges]
        graph.add_edges_from(edges)
        for name, column in record.edge_values.items():
            for edge, value in reversed(list(zip(edges, column.tolist(), strict=True))):
                if value is not None:
                    graph.edges[edge][name] = value
        for name, values in record.labels.items():
            natural = {node: vocabulary[name][value] for node, value in enumerate(values)}
            nx.set_node_attributes(graph, natural, name)
        for name, array in record.attributes.items():
            rows = array[:, 0].tolist() if array.shape[1] == 1 else array.tolist()
            nx.set_node_attributes(graph, dict(enumerate(rows)), name)
        if graphs.task == "graph" and classes[g] is not None:
            graph.graph["y"] = classes[g]
        if graphs.task == "node":
            classes_here = classes[first : first + record.num_nodes]
            known = {node: value for node, value in enumerate(classes_here) if value is not None}
            nx.set_node_attributes(graph, known, "y")
        first += record.num_nodes
        made.append(graph)
    return made


def _vocabulary(graphs: GraphSet, records: Sequence[GraphRecord]) -> dict[str, dict[str, Any]]:
    """Return for every label its names, and what they were before they were strings."""
    columns = records[0].labels if records else {}
    return {
        column: dict(zip(names, natural_values(names), strict=True))
        for column, names in zip(columns, graphs.label_names, strict=True)
    }


def _edge_values(graph: nx.Graph) -> dict[str, Any]:
    """Return the attributes of all edges by name."""
    table = [values for *_, values in graph.edges(data=True)]
    names = dict.fromkeys(name for values in table for name in values)
    return {str(name): objects([values.get(name) for values in table]) for name in names}


def _named(values: dict[Any, Any], task: str) -> dict[str, Any]:
    """Return what a node has; where nodes have classes, ``"y"`` is its class and not of them."""
    return {str(n): value for n, value in values.items() if task == "graph" or n != "y"}
