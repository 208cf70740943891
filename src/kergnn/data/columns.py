"""Columns of labels and attributes: those of a set matched with those a recipe was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from kergnn.data.graphset import DataError, GraphSet

# What columns are called that have no names of their own.
_NAMELESS = {"label", "attr", "attributes", "x"}


def label_positions(
    graphs: GraphSet, names: Sequence[Sequence[str]], columns: tuple[str, ...], unknown: str
) -> Tensor:
    """Return where the labels of every node (N, L) stand in ``names``, -1 for nowhere.

    Args:
        graphs: the graphs.
        names: the known labels of every column.
        columns: what these columns are called.
        unknown: ``"error"`` to refuse a label that is not known, ``"zeros"`` to warn.
    """
    count = 0 if graphs.labels is None else graphs.labels.size(1)
    if graphs.labels is None or count != len(names):
        raise DataError(
            f"{graphs.name} has {count} node labels a node, the model needs {len(names)}"
        )
    made = []
    order = column_order(graphs.name, graphs.label_columns, columns, count)
    for column, known in zip(order, names, strict=True):
        own = graphs.label_names[column]
        position = torch.tensor(
            [known.index(name) if name in known else -1 for name in own], dtype=torch.long
        )[graphs.labels[:, column]]
        strange = (position < 0).nonzero().flatten()
        if len(strange):
            label = own[int(graphs.labels[strange[0], column])]
            message = (
                f"{graphs.name}, graph {int(graphs.graph_of[strange[0]])} has node label "
                f"{label!r}, which the model does not know; it knows {', '.join(known)}"
            )
            if unknown == "error":
                raise DataError(message)
            warnings.warn(message, stacklevel=3)
        made.append(position)
    return torch.stack(made, dim=1)


def column_order(name: str, own: tuple[str, ...], needed: tuple[str, ...], count: int) -> list[int]:
    """Return where the columns that are needed stand; as they are where one side has no names.

    Args:
        name: what the set is called in an error.
        own: what its columns are called.
        needed: what the columns that are needed are called.
        count: number of columns.
    """
    if set(own) <= _NAMELESS or set(needed) <= _NAMELESS:
        return list(range(count))
    if sorted(own) != sorted(needed):
        raise DataError(f"{name} has {', '.join(own)} a node, the model needs {', '.join(needed)}")
    order = [0] * count
    places = (sorted(range(count), key=names.__getitem__) for names in (needed, own))
    for target, source in zip(*places, strict=True):
        order[target] = source
    return order


def standard(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the deviation of every column; a constant one is divided by one."""
    if len(rows) == 0:
        return rows.new_zeros(rows.size(1)), rows.new_ones(rows.size(1))
    scale = rows.std(0, correction=0)
    return rows.mean(0), scale.masked_fill(scale < 1e-12, 1)


def standardised(rows: Tensor, mean: tuple[float, ...], scale: tuple[float, ...]) -> Tensor:
    """Return the columns less their means, divided by their deviations, as 32-bit numbers."""
    centred = rows - torch.tensor(mean, dtype=torch.float64)
    return (centred / torch.tensor(scale, dtype=torch.float64)).float()
