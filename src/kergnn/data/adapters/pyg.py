"""PyG ``Data`` objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from kergnn._checks import check_edge_index
from kergnn.data.adapters.values import Names, as_name, names_of, show
from kergnn.data.graphset import LARGEST, DataError, GraphSet
from kergnn.data.records import GraphRecord, natural_values, objects, split


def read_pyg(
    graphs: Sequence[Data], node_labels: Names, node_attributes: Names
) -> list[GraphRecord]:
    """Read graphs.

    By default labels are what ``node_labels`` of the first graph with nodes names, if there is such
    an entry, and ``x`` holds attributes, or labels if it holds integers.
    """
    if node_labels is None and node_attributes is None:
        named = [data.node_labels for data in graphs if data.num_nodes and "node_labels" in data]
        labels = names_of(named[0], "graphs[0].node_labels") if named else []
        given = [data.x for data in graphs if data.x is not None]
        if given and "x" not in labels and all(isinstance(x, Tensor) and _whole(x) for x in given):
            labels.append("x")
        attributes = ["x"] if given and "x" not in labels else []
    else:
        labels = names_of(node_labels, "node_labels")
        attributes = names_of(node_attributes, "node_attributes")
    records = []
    for i, data in enumerate(graphs):
        where, n = f"graphs[{i}]", data.num_nodes
        if data.edge_index is None or n is None:
            raise DataError(f"{where} has no edge_index")
        try:
            check_edge_index(data.edge_index, n)
        except ValueError as error:
            raise DataError(f"{where}: {error}") from None
        columns: dict[str, list[str]] = {}
        for name in labels:
            columns |= _labels(_rows(data, name, n, where), name, where)
        arrays = {name: _numbers(_rows(data, name, n, where), name, where) for name in attributes}
        edges = data.edge_index.detach().cpu().numpy().T
        records.append(GraphRecord(n, edges, columns, arrays, _edge_values(data)))
    return records


def pyg_classes(graphs: Sequence[Data], task: str) -> list[Any]:
    """Return ``data.y`` of all graphs (one number each), or of all nodes."""
    found: list[Any] = []
    for i, data in enumerate(graphs):
        wanted = 1 if task == "graph" else data.num_nodes
        y = [None] * wanted if data.y is None else _list(data.y)
        if len(y) != wanted:
            raise DataError(f"graphs[{i}].y has {len(y)} values where {wanted} are expected")
        found += y
    return found


def to_pyg(graphs: GraphSet) -> list[Data]:
    """Return the graphs as PyG ``Data`` objects.

    ``x`` has the attributes in double precision; every label is a tensor, or a list of strings, of
    its own name, and ``node_labels`` lists these names, so that :func:`~kergnn.as_graphs` finds
    them. ``y`` is the class: its name if all names are integers, else its position in
    ``class_names``. It is left out where no class is known, and NaN for the single nodes without a
    class. Edges have both directions, each once, self-loops once; what is known of edges is a
    tensor or a list of its own name, and ``edge_values`` lists these names.
    """
    numbers = [n for n in natural_values(graphs.class_names) if isinstance(n, int)]
    whole = len(numbers) == len(graphs.class_names)
    classes = torch.tensor([*(numbers if whole else range(graphs.num_classes)), 0])
    parts = torch.split(graphs.y, 1 if graphs.task == "graph" else graphs.size.tolist())
    made = []
    for record, own in zip(split(graphs), parts, strict=True):
        row, col = np.asarray(record.edges, dtype=np.int64).reshape(-1, 2).T
        both = np.stack([np.append(row, col), np.append(col, row)])
        # The first of equal entries is the given one, which comes before the mirrored one.
        edge_index, first = np.unique(both, axis=1, return_index=True)
        data = Data(edge_index=torch.from_numpy(edge_index), num_nodes=record.num_nodes)
        for name, column in record.edge_values.items():
            data[name] = _as_tensor(column[first % max(len(row), 1)])
        if record.edge_values:
            data.edge_values = list(record.edge_values)
        known = own >= 0
        if known.any():
            # -1 is the zero at the end.
            data.y = classes[own] if known.all() else classes[own].double().where(known, torch.nan)
        if record.attributes:
            arrays = list(record.attributes.values())
            data.x = torch.from_numpy(np.concatenate(arrays, axis=1))
        for i, (name, values) in enumerate(record.labels.items()):
            natural = natural_values(graphs.label_names[i])
            is_number = all(isinstance(v, int) for v in natural)
            data[name] = torch.tensor([int(v) for v in values]) if is_number else list(values)
        if record.labels:
            data.node_labels = list(record.labels)
        made.append(data)
    return made


def _edge_values(data: Data) -> dict[str, Any]:
    """Return what ``edge_values`` names and what begins with ``edge_``, if it is of all edges."""
    found = {}
    for name, values in data.to_dict().items():
        ours = name in (data.get("edge_values") or ()) or name.startswith("edge_")
        if (
            name in ("edge_index", "edge_values")
            or not ours
            or not isinstance(values, list | Tensor)
        ):
            continue
        if len(values) == data.num_edges:
            known = values.detach().cpu().numpy() if isinstance(values, Tensor) else objects(values)
            found[name] = known
    return found


def _as_tensor(column: np.ndarray[Any, Any]) -> Tensor | list[Any]:
    """Return numbers, or rows of numbers, as a tensor, anything else as a list."""
    if column.dtype.kind not in "biuf":
        try:
            array = np.array(column.tolist())
        except ValueError:  # rows of different lengths
            return list(column.tolist())
        if array.dtype.kind not in "biuf":
            return list(column.tolist())
        column = array
    return torch.from_numpy(column)


def _rows(data: Data, name: str, num_nodes: int, where: str) -> Any:
    values = getattr(data, name, None)
    if values is None:
        if num_nodes == 0:
            return torch.empty(0)
        raise DataError(f"{where} has no {name!r}; it has {', '.join(data.keys())}")
    if not hasattr(values, "__len__") or len(values) != num_nodes:
        raise DataError(
            f"{where}.{name} is {show(values)}: it must have {num_nodes} rows, one a node"
        )
    return values


def _labels(values: Any, name: str, where: str) -> dict[str, list[str]]:
    rows = values.tolist() if isinstance(values, Tensor) else list(values)
    if not (isinstance(values, Tensor) and values.dim() == 2 and values.size(1) > 1):
        rows = [row[0] if isinstance(row, list) and len(row) == 1 else row for row in rows]
        return {name: [as_name(v, f"{where}.{name}[{i}]") for i, v in enumerate(rows)]}
    return {
        f"{name}{column}": [
            as_name(row[column], f"{where}.{name}[{i}, {column}]") for i, row in enumerate(rows)
        ]
        for column in range(values.size(1))
    }


def _numbers(values: Any, name: str, where: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if not isinstance(values, Tensor) or values.is_complex() or values.dim() > 2:
        raise DataError(f"{where}.{name} is {show(values)}: attributes are a tensor (n, width)")
    table = values.detach().cpu().double().reshape(len(values), -1 if len(values) else 0)
    wrong = (~(table.abs() < LARGEST)).nonzero()
    if len(wrong):
        row, col = wrong[0].tolist()
        value = table[row, col].item()
        raise DataError(f"{where}.{name}[{row}, {col}] is {value}: it must be a finite number")
    return table.numpy()


def _whole(x: Tensor) -> bool:
    return not x.is_floating_point() and not x.is_complex()


def _list(y: Any) -> list[Any]:
    values = y.reshape(-1).tolist() if isinstance(y, Tensor) else y
    found = list(values) if isinstance(values, list | tuple) else [values]
    # Whole numbers are floats where NaN stands for a class that is not known.
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in found]
