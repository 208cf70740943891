"""Values of nodes: which are labels, which are attributes, and what is refused."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kergnn.data.graphset import LARGEST, DataError
from kergnn.data.records import GraphRecord

# The values of every node of a graph, by the names of labels or attributes.
Table: TypeAlias = Sequence[Mapping[str, Any]]
Names: TypeAlias = str | Sequence[str] | None


def as_name(value: Any, where: str) -> str:
    """Return a label, or a class, as a string: it is one, an integer or a boolean."""
    value = value.item() if isinstance(value, np.generic | Tensor) else value
    if isinstance(value, Integral):
        return str(int(value))
    if not isinstance(value, str) or not value or not value.isprintable():
        raise DataError(f"{where} is {show(value)}: it must be an integer or a printable string")
    return str(value)


def as_numbers(value: Any, where: str) -> list[float]:
    """Return the numbers of an attribute: it is one, or a flat sequence of them."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    numbers = np.ravel(value).tolist() if isinstance(value, np.ndarray) else value
    numbers = list(numbers) if several else [numbers]
    for number in numbers:
        if not isinstance(number, Real) or not abs(float(number)) < LARGEST:
            raise DataError(
                f"{where} is {show(value)}: it must be a number within {LARGEST:g}, or a list of "
                "such numbers"
            )
    return [float(number) for number in numbers]


def names_of(names: Names, argument: str) -> list[str]:
    """Return one name or several as a list."""
    found = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        raise DataError(f"{argument} is {names!r}: it must be a name, or a list of names")
    return list(found)


def choose_names(
    tables: Sequence[Table], labels: Names, attributes: Names
) -> tuple[list[str], list[str]]:
    """Return the names of the labels and of the attributes.

    Without any names given, all are used: a name whose values are all strings, integers or booleans
    is a label, any other an attribute.
    """
    if labels is not None or attributes is not None:
        chosen = names_of(labels, "node_labels"), names_of(attributes, "node_attributes")
        twice = [name for name in chosen[0] if name in chosen[1]]
        if twice:
            raise DataError(f"{twice[0]!r} is in node_labels and in node_attributes")
        return chosen
    is_label: dict[str, bool] = {}
    for table in tables:
        for values in table:
            for name, value in values.items():
                label = value is None or isinstance(value, str | Integral | np.bool_)
                is_label[name] = is_label.get(name, True) and label
    return [n for n, yes in is_label.items() if yes], [n for n, yes in is_label.items() if not yes]


def read_columns(
    table: Table, nodes: Iterable[Any], labels: Sequence[str], attributes: Sequence[str], where: str
) -> tuple[dict[str, list[str]], dict[str, NDArray[np.float64]]]:
    """Return the labels and the attributes of one graph by their names.

    Args:
        table: the values of every node.
        nodes: what the nodes are called.
        labels: the names of the labels.
        attributes: the names of the attributes.
        where: how errors call the graph.
    """
    found: dict[str, list[Any]] = {name: [] for name in (*labels, *attributes)}
    for node, values in zip(nodes, table, strict=True):
        for name in found:
            if values.get(name) is None:
                raise DataError(
                    f"{where}, node {node!r} has no {name!r}: every node needs one, or name those "
                    "to use in node_labels and node_attributes ([] for none)"
                )
        for name in labels:
            found[name].append(as_name(values[name], f"{where}, node {node!r}: {name!r}"))
        for name in attributes:
            numbers = as_numbers(values[name], f"{where}, node {node!r}: {name!r}")
            if found[name] and len(numbers) != len(found[name][0]):
                raise DataError(
                    f"{where}, node {node!r}: {name!r} has {len(numbers)} numbers where the nodes "
                    f"before have {len(found[name][0])}"
                )
            found[name].append(numbers)
    arrays = {name: np.array(found[name], dtype=np.float64) for name in attributes}
    arrays = {n: a.reshape(len(a), -1 if len(a) else 0) for n, a in arrays.items()}
    return {name: found[name] for name in labels}, arrays


def warn_unused(records: Sequence[GraphRecord]) -> None:
    """Say once that some graphs have attributes of edges, which no kernel here looks at."""
    names = {name for record in records for name in record.edge_values}
    if names:
        _warn_once(", ".join(map(repr, sorted(names))))


@cache  # once a process: a cross-validation reads the same graphs again and again
def _warn_once(names: str) -> None:
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in (
        "kergnn",
        "sklearn",
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"graphs have attributes of edges ({names}): they are kept, but models and kernels do not "
        "use them",
        stacklevel=level,
    )


def show(value: Any) -> str:
    """Return a value for an error message, cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
