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
    an entry, and ``x`` holds attributes, or labels if it holds integers; ``node_attributes`` names
    the columns of ``x``.
    """
    if node_labels is None and node_attributes is None:
        labels, attributes = _listed(graphs, "node_labels"), _listed(graphs, "node_attributes")
        given = [data.x for data in graphs if data.x is not None]
        if given and not attributes and "x" not in labels:
            whole = all(isinstance(x, Tensor) and _whole(x) for x in given)
            (labels if whole else attributes).append("x")
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
        records.append(GraphRecord(n, edges, columns, arrays, _edge_values(data, where)))
    return records


def pyg_classes(graphs: Sequence[Data], task: str) -> list[Any]:
    """Return ``data.y`` of all graphs (one number each), or of all nodes."""
    found: list[Any] = []
    for i, data in enumerate(graphs):
        wanted = 1 if task == "graph" else data.num_nodes
        y: list[Any] = [None] * wanted if data.y is None else _list(data.y)
        names = _names(data, "class_names")
        if names and all(v != v or v in range(len(names)) for v in y):
            y = [names[v] if v == v else None for v in y]
        if len(y) != wanted:
            raise DataError(f"graphs[{i}].y has {len(y)} values where {wanted} are expected")
        found += y
    return found


def to_pyg(graphs: GraphSet) -> list[Data]:
    """Return the graphs as PyG ``Data`` objects.

    ``x`` has the attributes in double precision, ``node_attributes`` the names of its columns, if
    any; every label is a tensor, or a list of strings, of its own name, and ``node_labels`` lists
    these names, so that :func:`~kergnn.as_graphs` finds them. ``y`` is the class: its name if all
    names are integers, else its position in ``class_names``. It is left out where no class is
    known, and NaN for the single nodes without a class. Edges have both directions, each once,
    self-loops once; what is known of them is a tensor or a list whose name begins with ``edge_``,
    and ``edge_values`` lists the names. Labels whose names mean something else in PyG are refused.
    """
    records = split(graphs)
    _check_names(graphs, records)
    numbers = [n for n in natural_values(graphs.class_names) if isinstance(n, int)]
    whole = len(numbers) == len(graphs.class_names)
    classes = torch.tensor([*(numbers if whole else range(graphs.num_classes)), 0])
    sizes = [1] * len(records) if graphs.task == "graph" else graphs.size.tolist()
    parts = torch.split(graphs.y, sizes)
    made = []
    for record, own in zip(records, parts, strict=True):
        row, col = np.asarray(record.edges, dtype=np.int64).reshape(-1, 2).T
        both = np.stack([np.append(row, col), np.append(col, row)])
        # The first of equal entries is the given one, which comes before the mirrored one.
        edge_index, first = np.unique(both, axis=1, return_index=True)
        data = Data(edge_index=torch.from_numpy(edge_index), num_nodes=record.num_nodes)
        for name, column in record.edge_values.items():
            data[_edge_key(name)] = _as_tensor(column[first % max(len(row), 1)])
        if record.edge_values:
            data.edge_values = list(record.edge_values)
        known = own >= 0
        if known.any():
            # -1 is the zero at the end.
            data.y = classes[own] if known.all() else classes[own].double().where(known, torch.nan)
            if not whole:
                data.class_names = list(graphs.class_names)
        if record.attributes:
            arrays = list(record.attributes.values())
            data.x = torch.from_numpy(np.concatenate(arrays, axis=1))
        if graphs.attribute_columns and graphs.attribute_columns != ("x",) * data.num_features:
            data.node_attributes = [
                n for n, a in record.attributes.items() for _ in range(a.shape[1])
            ]
        for i, (name, values) in enumerate(record.labels.items()):
            natural = natural_values(graphs.label_names[i])
            is_number = all(isinstance(v, int) and abs(v) < 2**63 for v in natural)
            data[name] = torch.tensor([int(v) for v in values]) if is_number else list(values)
        if record.labels:
            data.node_labels = list(record.labels)
        made.append(data)
    return made


def _check_names(graphs: GraphSet, records: Sequence[GraphRecord]) -> None:
    """Refuse names that PyG, or this module, uses for something else."""
    labels = records[0].labels if records else {}
    ours = ("node_labels", "node_attributes", "class_names")
    free = {"x"} if graphs.attributes is None else set()
    wrong = [
        name
        for name in labels
        if name in ours or name.startswith("edge_") or (hasattr(Data, name) and name not in free)
    ]
    keys = [_edge_key(name) for name in graphs.edge_values]
    wrong += [name for name in graphs.edge_values if keys.count(_edge_key(name)) > 1]
    if wrong:
        raise DataError(f"{graphs.name} has {wrong[0]!r}, which means something else in PyG")


def _edge_key(name: str) -> str:
    """Return the name under which a value of edges stands in ``Data``."""
    key = name if name.startswith("edge_") else f"edge_{name}"
    return f"edge_{key}" if key in ("edge_index", "edge_values") else key


def _listed(graphs: Sequence[Data], entry: str) -> list[str]:
    """Return the names that an entry of the first graph with nodes lists, each once."""
    named = [_names(data, entry) for data in graphs if data.num_nodes]
    return list(dict.fromkeys(named[0])) if named else []


def _names(data: Data, entry: str) -> list[str]:
    """Return an entry that lists names, nothing if it is something else, perhaps the user's own."""
    names = data.get(entry)
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return names if listed else []


def _edge_values(data: Data, where: str) -> dict[str, Any]:
    """Return what ``edge_values`` lists, and what begins with ``edge_`` and is of all edges."""
    listed = {_edge_key(name): name for name in _names(data, "edge_values")}
    found = {}
    for key, values in data.to_dict().items():
        is_list = key == "edge_values" and bool(listed)
        an_index = "index" in key and key not in listed  # by PyG's own rule
        if an_index or is_list or not key.startswith("edge_"):
            continue
        if not isinstance(values, list | Tensor) or len(values) != data.num_edges:
            if key in listed or key in ("edge_attr", "edge_weight"):
                raise DataError(
                    f"{where}.{key} is {show(values)}: it must have {data.num_edges} rows, one an "
                    "edge"
                )
            continue
        found[listed.get(key, key)] = _as_array(values)
    return found


def _as_array(values: list[Any] | Tensor) -> np.ndarray[Any, Any]:
    if not isinstance(values, Tensor):
        return objects(values)
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


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
    values, columns = data.get(name), _names(data, "node_attributes")
    if name in columns:
        if not isinstance(data.x, Tensor) or data.x.dim() != 2 or data.x.size(1) != len(columns):
            raise DataError(f"{where}.x must have {len(columns)} columns, as node_attributes has")
        values = data.x[:, [i for i, column in enumerate(columns) if column == name]]
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
