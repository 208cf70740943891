"""JSON lines: one graph a line, for graphs of one's own.

    {"nodes": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "label": "mutagen"}
    {"nodes": 2, "edges": [[0, 1]], "features": [[0.5, 1], [2, 3]], "label": "harmless"}

| key | value |
|---|---|
| ``nodes`` | the number of nodes, or a list with the label (a string or an integer) of every node |
| ``edges`` | a list of pairs of nodes, from 0 |
| ``features`` | optional: for every node a list of numbers |
| ``label`` | the class of the graph, a string or an integer; not needed for prediction |
| ``id`` | optional: a name of the graph, which predictions repeat |
| ``targets`` | instead of ``label``, to classify nodes: for every node its class or ``null`` |

Edges are undirected: double edges count once, self-loops do not count. All graphs of a file have
the same keys and the same number of features. Empty lines are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kergnn.data.graphset import LARGEST, DataError, GraphSet, Task
from kergnn.data.records import GraphRecord, join

_KEYS = {"nodes", "edges", "features", "label", "targets", "id"}
# What all graphs of a file have or have not: how it is said that it is missing, there, there too.
_SAID = {
    "labels": ("no node labels", "node labels", "some"),
    "features": ("no features", "features", "some"),
    "label": ("no label", "a label", "one"),
    "targets": ("no targets", "targets", "some"),
    "id": ("no id", "an id", "one"),
}


def read_jsonl(path: Path) -> GraphSet:
    """Read a file of graphs, one JSON object a line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file (byte {error.start})") from error
    graphs: list[_Graph] = []
    width: int | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                graphs.append(_Graph(line))
            except DataError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            first, last = graphs[0].has, graphs[-1].has
            for what, present in last.items():
                if present != first[what]:
                    raise DataError(
                        f"{path}, line {number}: has {_SAID[what][present]}, but the first graph "
                        f"has {_SAID[what][2] if first[what] else 'none'}"
                    )
            if graphs[-1].features:
                found = len(graphs[-1].features[0])
                width = found if width is None else width
                if found != width:
                    raise DataError(
                        f"{path}, line {number}: has {found} features a node; the graphs before "
                        f"have {width}"
                    )
    if not graphs:
        raise DataError(f"{path}: there is no graph")
    return _join(path, graphs)


class _Graph:
    """One line, checked."""

    def __init__(self, line: str) -> None:
        record = _parse(line)
        unknown = sorted(set(record) - _KEYS)
        if unknown:
            raise DataError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
        missing = [key for key in ("nodes", "edges") if key not in record]
        if missing:
            raise DataError(f"key {missing[0]!r} is missing")
        nodes = record["nodes"]
        self.labels: list[str] | None = None
        if isinstance(nodes, list):
            self.labels = [_name(v, f"nodes[{i}]") for i, v in enumerate(nodes)]
            self.num_nodes = len(nodes)
        elif isinstance(nodes, int) and not isinstance(nodes, bool) and 0 <= nodes <= 2**31:
            self.num_nodes = nodes
        else:
            raise DataError(f"nodes is {_show(nodes)}: it must be a number of nodes or a list")
        self.edges = self._edges(record["edges"])
        self.features = self._features(record.get("features"))
        self.label = None if record.get("label") is None else _name(record["label"], "label")
        self.targets = self._targets(record.get("targets"))
        self.id = None if record.get("id") is None else _name(record["id"], "id")
        if self.label is not None and self.targets is not None:
            raise DataError("label and targets exclude each other")

    @property
    def has(self) -> dict[str, bool]:
        """What the graph has; it must be the same for all graphs of a file."""
        return {what: getattr(self, what) is not None for what in _SAID}

    def _edges(self, edges: Any) -> list[list[int]]:
        if not isinstance(edges, list):
            raise DataError(f"edges is {_show(edges)}: it must be a list of pairs")
        for i, edge in enumerate(edges):
            pair = isinstance(edge, list) and len(edge) == 2 and all(type(v) is int for v in edge)
            if not pair:
                raise DataError(f"edges[{i}] is {_show(edge)}: it must be a pair of nodes")
            if not all(0 <= v < self.num_nodes for v in edge):
                raise DataError(
                    f"edges[{i}] is {_show(edge)}: nodes are numbered from 0 to "
                    f"{self.num_nodes - 1}"
                )
        return edges

    def _features(self, features: Any) -> list[list[float]] | None:
        if features is None:
            return None
        if not isinstance(features, list) or len(features) != self.num_nodes:
            raise DataError(f"features must be a list of {self.num_nodes} lists, one a node")
        for i, row in enumerate(features):
            if not isinstance(row, list) or not row:
                raise DataError(f"features[{i}] is {_show(row)}: it must be a list of numbers")
            if len(row) != len(features[0]):
                raise DataError(
                    f"features[{i}] is {_show(row)}: it must have {len(features[0])} numbers, as "
                    "features[0] has"
                )
            for j, value in enumerate(row):
                if type(value) not in (int, float) or not abs(value) < LARGEST:
                    raise DataError(f"features[{i}][{j}] is {_show(value)}: it must be a number")
        return features

    def _targets(self, targets: Any) -> list[str | None] | None:
        if targets is None:
            return None
        if not isinstance(targets, list) or len(targets) != self.num_nodes:
            raise DataError(f"targets must be a list of {self.num_nodes} classes, one a node")
        return [None if v is None else _name(v, f"targets[{i}]") for i, v in enumerate(targets)]


def _parse(line: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise DataError(f"{constant} is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise DataError(f"key {key!r} is there twice")
        return dict(pairs)

    try:
        record = json.loads(line, parse_constant=refuse, object_pairs_hook=unique)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"not JSON ({error})") from None
    except DataError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise DataError(f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"{_show(record)} is not an object with nodes and edges")
    return record


def _name(value: Any, where: str) -> str:
    if type(value) not in (str, int) or value == "":
        raise DataError(f"{where} is {_show(value)}: it must be a string or an integer")
    name = str(value)
    if not name.isprintable():
        raise DataError(f"{where} is {_show(value)}: it must be printable")
    return name


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _join(path: Path, graphs: list[_Graph]) -> GraphSet:
    task: Task = "node" if graphs[0].targets is not None else "graph"
    records, classes = [], []
    for graph in graphs:
        features = np.array(graph.features or (), dtype=np.float64)
        records.append(
            GraphRecord(
                num_nodes=graph.num_nodes,
                edges=graph.edges,
                labels={} if graph.labels is None else {"label": graph.labels},
                attributes={}
                if graph.features is None
                else {"attr": features.reshape(graph.num_nodes, -1 if graph.num_nodes else 0)},
                id=graph.id,
            )
        )
        classes += [graph.label] if task == "graph" else list(graph.targets or ())
    return join(path.stem, records, classes, task, str(path))
