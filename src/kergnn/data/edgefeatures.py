"""Features of edges: one-hot vectors of what edges are, for networks that look at it."""

from __future__ import annotations

import warnings
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from kergnn.data.graphset import DataError, GraphSet

EdgeNames: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


def find_edge_names(graphs: GraphSet) -> EdgeNames:
    """Return what values edges have, by name, where they are kinds and not measures."""
    found = []
    for name, values in graphs.edge_values.items():
        given = [] if values.ndim > 1 else [v for v in values.tolist() if v is not None]
        if given and not any(isinstance(v, (float, list)) for v in given):
            found.append((name, tuple(sorted(set(map(str, given))))))
    return tuple(found)


def edge_features(names: EdgeNames, graphs: GraphSet, unknown: str) -> Tensor | None:
    """Return one-hot features (E', e) of ``graphs.simple_edges``, or none if there are no names.

    An edge without a value has zeros; so has one with an unknown value where ``unknown`` is
    ``"zeros"`` and not ``"error"``, with a warning.
    """
    if not names:
        return None
    entries, made = graphs.simple_entries.numpy(), []
    for name, known in names:
        values = graphs.edge_values.get(name, np.full(graphs.edge_index.size(1), None))
        given = [None if v is None else str(v) for v in values[entries].tolist()]
        position: dict[str | None, int] = {value: i for i, value in enumerate(known, start=1)}
        strange = {value for value in given if value not in position and value is not None}
        if name not in graphs.edge_values and len(entries):
            _complain(unknown, f"{graphs.name} has no {name!r} of edges, which the model needs")
        elif strange:
            _complain(
                unknown,
                f"{graphs.name} has edges with {name} {min(strange)!r}, which the model does "
                f"not know; it knows {', '.join(known)}",
            )
        column = torch.tensor([position.get(value, 0) for value in given], dtype=torch.long)
        made.append(one_hot(column, len(known) + 1)[:, 1:].float())
    return torch.cat(made, dim=1)


def _complain(unknown: str, message: str) -> None:
    if unknown == "error":
        raise DataError(message)
    warnings.warn(message, stacklevel=4)
