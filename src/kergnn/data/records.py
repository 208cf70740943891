"""Single graphs as plain values: what readers make of their input, and sets of graphs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn.data.graphset import DataError, GraphSet, Task, encode


@dataclass(frozen=True)
class GraphRecord:
    """One graph of n nodes.

    Args:
        num_nodes: number of nodes n.
        edges: pairs of nodes, counted from 0.
        labels: for every label, by its name, that of every node.
        attributes: for every attribute, by its name, an array (n, width).
        edge_values: by name, the values of all edges, None where an edge has none.
        id: a name of the graph.
    """

    num_nodes: int
    edges: Sequence[Sequence[int]] | NDArray[np.int64]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    edge_values: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    id: str | None = None


def join(
    name: str,
    records: Sequence[GraphRecord],
    classes: Sequence[str | None],
    task: Task = "graph",
    source: str = "",
) -> GraphSet:
    """Return a set of graphs that all have the same labels and attributes.

    Args:
        name: what the set is called.
        records: the graphs.
        classes: the class of every graph, or of every node of all graphs; ``None`` if not known.
        task: whether graphs or nodes have classes.
        source: where the graphs come from.
    """
    known = torch.tensor([c is not None for c in classes], dtype=torch.bool)
    codes, class_names = encode([c for c in classes if c is not None])
    y = torch.full((len(classes),), -1)
    y[known] = codes

    size = np.array([r.num_nodes for r in records], dtype=np.int64)
    offset = np.cumsum(size) - size
    pairs = [np.asarray(r.edges, dtype=np.int64).reshape(-1, 2) for r in records]
    edges = np.concatenate([p + o for p, o in zip(pairs, offset, strict=True)])

    # A graph without nodes fits any labels and attributes, and may not know of them.
    filled = [r for r in records if r.num_nodes] or list(records)
    columns = [encode([v for r in filled for v in r.labels[c]]) for c in filled[0].labels]
    widths = {a: array.shape[1] for a, array in filled[0].attributes.items()}
    attributes = [np.concatenate([r.attributes[a] for r in filled]) for a in widths]
    edge_columns = dict.fromkeys(name for r in records for name in r.edge_values)
    ids = tuple(r.id for r in records if r.id is not None)
    return GraphSet(
        name=name,
        task=task,
        size=torch.from_numpy(size),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges.T)),
        y=y,
        class_names=class_names,
        labels=torch.stack([codes for codes, _ in columns], dim=1) if columns else None,
        label_names=tuple(names for _, names in columns),
        attributes=torch.from_numpy(np.concatenate(attributes, axis=1)) if attributes else None,
        edge_values={name: _edge_column(records, name) for name in edge_columns},
        source=source,
        ids=ids if len(ids) == len(records) else (),
        label_columns=tuple(filled[0].labels),
        attribute_columns=tuple(a for a, width in widths.items() for _ in range(width)),
    )


def split(graphs: GraphSet) -> list[GraphRecord]:
    """Return the graphs of a set one by one: :func:`join` makes the same set of them again.

    Labels and attributes that have no names are called ``label`` and ``attributes``.
    """
    if not isinstance(graphs, GraphSet):
        raise DataError(f"graphs is a {type(graphs).__name__}: as_graphs makes a GraphSet of it")
    ptr, edges = graphs.ptr.tolist(), local_edges(graphs)
    names = graphs.label_columns or _numbered("label", len(graphs.label_names))
    labels: dict[str, NDArray[Any]] = {}
    for i, column in enumerate(names):
        values = np.array(graphs.label_names[i], dtype=object)
        labels[column] = values[_array(graphs.labels)[:, i]]
    attributes = _by_name(graphs)
    return [
        GraphRecord(
            num_nodes=stop - start,
            edges=edges[g].T.numpy(),
            labels={name: values[start:stop].tolist() for name, values in labels.items()},
            attributes={name: array[start:stop] for name, array in attributes.items()},
            edge_values={
                name: values[graphs.edge_positions[g].numpy()]
                for name, values in graphs.edge_values.items()
            },
            id=graphs.ids[g] if graphs.ids else None,
        )
        for g, (start, stop) in enumerate(pairwise(ptr))
    ]


def local_edges(graphs: GraphSet) -> list[Tensor]:
    """Return the edges (2, E_g) of every graph, between its own nodes counted from 0."""
    firsts = graphs.ptr[:-1]
    return [
        graphs.edge_index[:, entries] - first
        for first, entries in zip(firsts, graphs.edge_positions, strict=True)
    ]


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values of any kind as an array with one dimension."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def class_values(graphs: GraphSet) -> list[str | None]:
    """Return the name of the class of every graph, or node; ``None`` where it is not known."""
    return [graphs.class_names[c] if c >= 0 else None for c in graphs.y.tolist()]


def natural_values(values: Sequence[str | None]) -> list[int | str | None]:
    """Return labels as integers if all of them are, as they were most likely given."""
    try:
        whole = [v if v is None else int(v) for v in values]
    except ValueError:
        return list(values)
    as_given = all(v is None or str(v) == text for v, text in zip(whole, values, strict=True))
    return list(whole if as_given else values)


def check_alike(records: Sequence[GraphRecord]) -> None:
    """Refuse graphs that do not have the same labels and attributes."""
    filled = [(i, r) for i, r in enumerate(records) if r.num_nodes]
    for i, record in filled[1:]:
        first, other = _describe(filled[0][1]), _describe(record)
        if first != other:
            raise DataError(f"graphs[{i}] has {other}; graphs[{filled[0][0]}] has {first}")


def _describe(record: GraphRecord) -> str:
    widths = {name: array.shape[1] for name, array in record.attributes.items()}
    labels = [f"label {name!r}" for name in record.labels]
    attributes = [f"attribute {name!r} ({width} numbers)" for name, width in widths.items()]
    return ", ".join(labels + attributes) or "neither labels nor attributes"


def _edge_column(records: Sequence[GraphRecord], name: str) -> NDArray[Any]:
    """Return one value of all edges: as numbers if that is what all graphs have."""
    parts = [r.edge_values.get(name, np.full(len(r.edges), None)) for r in records]
    parts = [part for part in parts if len(part)] or parts[:1]
    alike = len({(part.dtype, part.shape[1:]) for part in parts}) == 1
    return np.concatenate(parts if alike else [objects(part.tolist()) for part in parts])


def _by_name(graphs: GraphSet) -> dict[str, NDArray[np.float64]]:
    """Return the attributes by their names, those without in one array."""
    if graphs.attributes is None:
        return {}
    array = _array(graphs.attributes)
    columns = np.array(graphs.attribute_columns or ["attributes"] * array.shape[1])
    return {str(name): array[:, columns == name] for name in dict.fromkeys(columns.tolist())}


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (name,) if count == 1 else tuple(f"{name}{i}" for i in range(count))


def _array(tensor: Tensor | None) -> NDArray[Any]:
    return np.empty((0, 0)) if tensor is None else tensor.numpy()
