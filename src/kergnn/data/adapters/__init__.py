"""Graphs of other libraries, made into a :class:`~kergnn.data.GraphSet` and back.

| kind | labels of nodes | attributes of nodes | class |
|---|---|---|---|
| networkx ``Graph`` | node attributes, by name | node attributes, by name | ``graph.graph["y"]`` |
| PyG ``Data`` | ``x`` if it holds integers, or by name | ``x``, or by name | ``y`` |
| GraKeL: edges, or ``[edges, node labels]`` | strings and integers | numbers and lists | |
| SMILES, or a molecule of RDKit | ``element``, or by name | | |
| adjacency matrix: NumPy, SciPy sparse, torch | | | |

Graphs are undirected and have at most one edge between two nodes: of two one counts, self-loops do
not count. Directed networkx graphs and matrices that are not symmetric are refused; of a PyG edge
index and of GraKeL edges either direction counts. Weights in a matrix other than one are refused.
Attributes of edges are kept for the way back (those of networkx by name, ``edge_attr`` and what
else begins with ``edge_`` of PyG, edge labels of GraKeL, ``bond`` of molecules), but no model or
kernel uses them, and a warning says so. Names of nodes are dropped; the order of the nodes stays,
only those of GraKeL, which have none, are sorted by name. Labels and classes are names: ``True``,
``1`` and ``"1"`` are the same one, and are given back as integers if all are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from kergnn.data.adapters.grakel_graphs import is_edge_list, is_grakel, read_grakel, to_grakel
from kergnn.data.adapters.matrices import read_matrix, to_adjacency
from kergnn.data.adapters.networkx_graphs import networkx_classes, read_networkx, to_networkx
from kergnn.data.adapters.pyg import pyg_classes, read_pyg, to_pyg
from kergnn.data.adapters.smiles import is_molecule, read_molecules, to_smiles
from kergnn.data.adapters.values import Names, as_name, show, warn_unused
from kergnn.data.graphset import DataError, GraphSet, Task
from kergnn.data.records import GraphRecord, check_alike, class_values, join, split

__all__ = [
    "as_graphs",
    "read_graphs",
    "to_adjacency",
    "to_grakel",
    "to_networkx",
    "to_pyg",
    "to_smiles",
]

_KNOWN = (
    "networkx graphs, PyG Data, GraKeL graphs, SMILES strings, adjacency matrices or a GraphSet"
)
# What PyG graphs are found to have where nothing was named.
_LABELS_X, _NUMBERS_X = (("x",), ()), ((), ("x",))


def as_graphs(
    graphs: Any,
    y: Any = None,
    *,
    task: Task = "graph",
    node_labels: Names = None,
    node_attributes: Names = None,
    name: str = "graphs",
) -> GraphSet:
    """Return graphs of any known kind as a :class:`~kergnn.data.GraphSet`.

    Args:
        graphs: one graph, or a list or any iterable of graphs of one kind; see
            :mod:`kergnn.data.adapters` for the kinds and for what is dropped.
        y: the class of every graph (or of every node of all graphs): strings or integers, ``None``
            where it is not known. By default what the graphs say themselves.
        task: ``"graph"`` where graphs have classes, ``"node"`` where nodes have.
        node_labels: for networkx, PyG and molecules, the name or names of node attributes that are
            discrete labels.
        node_attributes: for networkx and PyG, those that are numbers, or lists of numbers. Without
            both, all node attributes of networkx graphs are used: those with strings, integers or
            booleans are labels, all others are numbers.
        name: what the set is called in messages.
    """
    items = _items(graphs)
    kind = _common_kind(items)
    records = _read(items, kind, node_labels, node_attributes, task)
    given = _own_classes(items, kind, task) if y is None else list(_values(y))
    count = len(records) if task == "graph" else sum(r.num_nodes for r in records)
    if given and len(given) != count:
        raise DataError(f"y has {len(given)} classes, but there are {count} {task}s")
    known = [None if _unknown(v) else as_name(_whole(v), f"y[{i}]") for i, v in enumerate(given)]
    return join(name, records, known or [None] * count, task)


def read_graphs(
    graphs: Any,
    node_labels: Names = None,
    node_attributes: Names = None,
    task: Task = "graph",
    like: tuple[Sequence[str], Sequence[str]] | None = None,
) -> list[GraphRecord]:
    """Return graphs of any known kind one by one, without classes; see :func:`as_graphs`.

    Args:
        graphs, node_labels, node_attributes, task: see :func:`as_graphs`.
        like: the names of labels and attributes that graphs read before had, so that the same are
            read again, whatever else the graphs have.
    """
    items = _items(graphs)
    kind = _common_kind(items)
    by_name = kind == "a networkx graph" or (
        kind == "a PyG Data" and like in (_LABELS_X, _NUMBERS_X)
    )
    if like is not None and by_name:
        node_labels, node_attributes = like
    return _read(items, kind, node_labels, node_attributes, task)


def _read(
    items: list[Any], kind: str, node_labels: Names, node_attributes: Names, task: Task
) -> list[GraphRecord]:
    if kind in ("a GraphSet", "a GraKeL graph", "an adjacency matrix"):
        for argument, value in (("node_labels", node_labels), ("node_attributes", node_attributes)):
            if value:
                raise DataError(f"{argument} is {value!r}: {kind} has no attributes by name")
    if kind == "a GraphSet":
        records = [record for item in items for record in split(item)]
    elif kind == "a networkx graph":
        records = read_networkx(items, node_labels, node_attributes, task)
    elif kind == "a PyG Data":
        records = read_pyg(items, node_labels, node_attributes)
    elif kind == "a molecule":
        records = read_molecules(items, node_labels)
    elif kind == "a GraKeL graph":
        records = read_grakel(items)
    else:
        records = [read_matrix(item, f"graphs[{i}]") for i, item in enumerate(items)]
    check_alike(records)
    if kind not in ("a molecule", "a GraphSet"):  # of these it is known what they have
        warn_unused(records)
    return records


def _kind(item: Any) -> str | None:
    """Return what one graph is, ``None`` if it is none."""
    if isinstance(item, GraphSet):
        return "a GraphSet"
    if isinstance(item, nx.Graph):
        return "a networkx graph"
    if isinstance(item, Data) and not isinstance(item, Batch):
        return "a PyG Data"
    if isinstance(item, str) or is_molecule(item):
        return "a molecule"
    if sp.issparse(item) or (isinstance(item, np.ndarray | Tensor) and item.ndim == 2):
        return "an adjacency matrix"
    if is_grakel(item):
        return "a GraKeL graph"
    if isinstance(item, list) and _is_table(item):
        return "an adjacency matrix"
    return None


def _items(graphs: Any) -> list[Any]:
    """Return the single graphs of whatever was given."""
    if isinstance(graphs, Batch):
        return list(graphs.to_data_list())
    if isinstance(graphs, list | tuple) and _is_table(graphs):
        graphs = np.array(graphs)
    table = isinstance(graphs, np.ndarray | Tensor) or sp.issparse(graphs)
    if hasattr(graphs, "columns") or (table and graphs.ndim == 2 and not _is_square(graphs)):
        sparse = "sparse " if sp.issparse(graphs) else ""
        raise DataError(
            f"graphs is a {sparse}table of shape {tuple(graphs.shape)}: rows of features are not "
            f"graphs; expected are {_KNOWN}"
        )
    # A list of one graph, or of dictionaries, is a list, though GraKeL would take it as a graph.
    listed = (
        isinstance(graphs, list | tuple)
        and not is_edge_list(graphs)
        and (len(graphs) == 1 or all(isinstance(graph, Mapping) for graph in graphs))
    )
    if _kind(graphs) is not None and not listed:
        return [graphs]
    if isinstance(graphs, Path | bytes | Mapping | HeteroData) or not isinstance(graphs, Iterable):
        hint = "; kergnn.data.load_graphs reads files" if isinstance(graphs, Path) else ""
        raise DataError(f"graphs is {show(graphs)}: expected are {_KNOWN}{hint}")
    items = list(graphs)
    if not items:
        raise DataError("graphs is empty: at least one graph is needed")
    return items


def _common_kind(items: list[Any]) -> str:
    kinds = [_kind(item) for item in items]
    for i, kind in enumerate(kinds):
        if kind is None:
            raise DataError(f"graphs[{i}] is {show(items[i])}: expected are {_KNOWN}")
        if kind != kinds[0]:
            raise DataError(
                f"graphs[{i}] is {kind}, but graphs[0] is {kinds[0]}: all graphs must be of "
                "one kind"
            )
    return str(kinds[0])


def _own_classes(items: list[Any], kind: str, task: Task) -> list[Any]:
    """Return the classes that the graphs themselves know, an empty list for none."""
    if kind == "a networkx graph":
        return networkx_classes(items, task)
    if kind == "a PyG Data":
        return pyg_classes(items, task)
    if kind == "a GraphSet":
        return [value for item in items if item.task == task for value in class_values(item)]
    return []


def _values(y: Any) -> Iterable[Any]:
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise DataError(f"y is {show(y)}: it must be a list of classes")
    return y.tolist() if isinstance(y, np.ndarray | Tensor) else y


def _unknown(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN


def _whole(value: Any) -> Any:
    """Return a float that is a whole number as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_table(graphs: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether this is a matrix written as a list of lists of numbers."""
    return bool(graphs) and all(
        isinstance(row, list) and row and all(isinstance(v, int | float | np.number) for v in row)
        for row in graphs
    )


def _is_square(table: Any) -> bool:
    return bool(table.shape[0] == table.shape[1])
