"""The TU format: a folder or an archive of ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and more.

| file | a line | |
|---|---|---|
| ``NAME_A.txt`` | an edge: two node numbers, from 1 | needed |
| ``NAME_graph_indicator.txt`` | the graph of a node, from 1, ascending | needed |
| ``NAME_graph_labels.txt`` | the class of a graph, an integer | needed |
| ``NAME_node_labels.txt`` | the label of a node, one or more integers | optional |
| ``NAME_node_attributes.txt`` | the attributes of a node, numbers | optional |
| ``NAME_edge_labels.txt`` | the label of an edge, one or more integers | optional |
"""

from __future__ import annotations

import io
import lzma
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kergnn.data.graphset import LARGEST, DataError, GraphSet

Reader: TypeAlias = Callable[[str], "bytes | None"]

_SUFFIXES = (
    "A",
    "graph_indicator",
    "graph_labels",
    "node_labels",
    "node_attributes",
    "edge_labels",
)


def read_tu_folder(folder: Path) -> GraphSet:
    """Read the one data set in TU format that ``folder`` (or its ``raw`` folder) holds."""
    candidates = sorted([*folder.glob("*_A.txt"), *folder.glob("raw/*_A.txt")])
    if len(candidates) != 1:
        found = ", ".join(str(c.relative_to(folder)) for c in candidates) or "none"
        raise DataError(f"{folder}: expected one file NAME_A.txt (TU format), found {found}")
    prefix = str(candidates[0]).removesuffix("A.txt")

    def read(suffix: str) -> bytes | None:
        path = Path(f"{prefix}{suffix}.txt")
        return path.read_bytes() if path.is_file() else None

    name = Path(prefix).name.removesuffix("_")
    return _read(name, read, f"{prefix}{{}}.txt", str(folder))


def read_tu_archive(path: Path, name: str) -> GraphSet:
    """Read the data set ``name`` from a zip archive as TUDatasets publishes it."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(m).name: m for m in archive.namelist()}

            def read(suffix: str) -> bytes | None:
                member = members.get(f"{name}_{suffix}.txt")
                return None if member is None else archive.read(member)

            return _read(name, read, f"{path}:{name}_{{}}.txt", str(path))
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise DataError(f"{path}: not a complete zip archive ({error})") from error


def _read(name: str, read: Reader, file: str, source: str) -> GraphSet:
    tables = {}
    for suffix in _SUFFIXES:
        content = read(suffix)
        if content is not None:
            kind = np.float64 if suffix == "node_attributes" else np.int64
            tables[suffix] = _table(content, kind, file.format(suffix))
        elif suffix in _SUFFIXES[:3]:
            raise DataError(f"{file.format(suffix)}: file is missing")

    indicator = _column(tables["graph_indicator"], file.format("graph_indicator"))
    classes = _column(tables["graph_labels"], file.format("graph_labels"))
    size = _graph_sizes(indicator, len(classes), file.format("graph_indicator"))
    edges = _edges(tables["A"], indicator, file.format("A"))
    for suffix, count, what in (
        ("node_labels", len(indicator), "nodes"),
        ("node_attributes", len(indicator), "nodes"),
        ("edge_labels", len(edges), "edges"),
    ):
        if suffix in tables and len(tables[suffix]) != count:
            lines = len(tables[suffix])
            raise DataError(f"{file.format(suffix)}: {lines} lines for {count} {what}")

    class_names, y = np.unique(classes, return_inverse=True)
    labels, label_names = None, []
    if "node_labels" in tables:
        columns = []
        for column in tables["node_labels"].T:
            values, codes = np.unique(column, return_inverse=True)
            columns.append(codes)
            label_names.append(tuple(str(v) for v in values))
        labels = torch.from_numpy(np.stack(columns, axis=1))
    attributes, bonds = tables.get("node_attributes"), tables.get("edge_labels", np.empty((0, 0)))
    several = bonds.shape[1] > 1
    return GraphSet(
        name=name,
        task="graph",
        size=torch.from_numpy(size),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges.T)),
        y=torch.from_numpy(y),
        class_names=tuple(str(c) for c in class_names),
        labels=labels,
        label_names=tuple(label_names),
        attributes=None if attributes is None else torch.from_numpy(attributes),
        edge_values={f"label{i}" if several else "label": c for i, c in enumerate(bonds.T)},
        source=source,
    )


def _table(content: bytes, kind: type, file: str) -> NDArray[Any]:
    """Parse lines of comma-separated numbers: (number of lines, number of columns)."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not a text file (byte {error.start})") from error
    text = text.rstrip()
    if not text:
        return np.empty((0, 1 if "_A." not in file else 2), dtype=kind)
    table: NDArray[Any] | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = np.loadtxt(io.StringIO(text), dtype=kind, delimiter=",", comments=None, ndmin=2)
    except (ValueError, OverflowError, Warning):
        pass  # the fault is found below
    lines = text.count("\n") + 1
    if table is None or len(table) != lines or not (np.abs(table) < LARGEST).all():
        raise DataError(_first_fault(text, kind, file))
    return table


def _first_fault(text: str, kind: type, file: str) -> str:
    """Find the line that the fast parser stumbled over."""
    wanted = "a number" if kind is np.float64 else "an integer"
    width = None
    for number, line in enumerate(text.split("\n"), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        for cell in cells:
            try:
                with np.errstate(over="ignore"):
                    valid = bool(np.abs(kind(cell)) < LARGEST)
            except (ValueError, OverflowError):
                valid = False
            if not valid:
                return f"{file}, line {number}: {cell[:40]!r} is not {wanted}"
        width = len(cells) if width is None else width
        if len(cells) != width:
            return f"{file}, line {number}: {len(cells)} values where line 1 has {width}"
    return f"{file}: not a table of numbers"


def _column(table: NDArray[Any], file: str) -> NDArray[Any]:
    if table.shape[1] != 1:
        raise DataError(f"{file}, line 1: {table.shape[1]} values where one is expected")
    return table[:, 0]


def _graph_sizes(indicator: NDArray[Any], num_graphs: int, file: str) -> NDArray[Any]:
    if num_graphs == 0:
        raise DataError(f"{file.replace('graph_indicator', 'graph_labels')}: there is no graph")
    outside = np.flatnonzero((indicator < 1) | (indicator > num_graphs))
    if len(outside):
        line = outside[0]
        raise DataError(
            f"{file}, line {line + 1}: graph {indicator[line]} is not among the {num_graphs} graphs"
        )
    falling = np.flatnonzero(np.diff(indicator) < 0)
    if len(falling):
        raise DataError(f"{file}, line {falling[0] + 2}: graph numbers must not decrease")
    size = np.bincount(indicator - 1, minlength=num_graphs)
    empty = np.flatnonzero(size == 0)
    if len(empty):
        raise DataError(f"{file}: graph {empty[0] + 1} has no node")
    return size


def _edges(table: NDArray[Any], indicator: NDArray[Any], file: str) -> NDArray[Any]:
    if table.shape[1] != 2:
        raise DataError(f"{file}, line 1: {table.shape[1]} values where two are expected")
    edges = table - 1
    wrong = np.flatnonzero(((edges < 0) | (edges >= len(indicator))).any(axis=1))
    if len(wrong):
        a, b = table[wrong[0]]
        raise DataError(
            f"{file}, line {wrong[0] + 1}: edge {a}, {b} leaves the {len(indicator)} nodes"
        )
    across = np.flatnonzero(indicator[edges[:, 0]] != indicator[edges[:, 1]])
    if len(across):
        a, b = table[across[0]]
        raise DataError(f"{file}, line {across[0] + 1}: edge {a}, {b} joins two graphs")
    return edges
