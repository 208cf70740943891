"""The parts of a feature recipe: what each learns from a training part, and the columns it makes.

Each is a frozen dataclass of plain values, which are what it has learned. Those made of labels are
in :mod:`kergnn.data.labelparts`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from kergnn.data.bins import bin_limits, bin_names
from kergnn.data.cliques import clique_shares
from kergnn.data.columns import column_order, standard, standardised
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.returns import RETURN_STEPS


class Part(Protocol):
    """Some columns of the features of nodes."""

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Part:
        """Learn from the given nodes, those of the training part."""

    @property
    def names(self) -> list[str]:
        """What every column is."""

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        """Return the columns (N, d) of all nodes, those with unknown labels as asked for."""


@dataclass(frozen=True)
class Constant:
    """The number one."""

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Constant:
        return cls()

    @property
    def names(self) -> list[str]:
        return ["const"]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return torch.ones(graphs.num_nodes, 1)


@dataclass(frozen=True)
class Degree:
    """The number of neighbours."""

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Degree:
        return cls()

    @property
    def names(self) -> list[str]:
        return ["degree"]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return graphs.degree.float().unsqueeze(1)


@dataclass(frozen=True)
class BinnedDegree:
    """In which bin the degree is; one beyond the largest that is known is in the last bin."""

    max_degree: int

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> BinnedDegree:
        return cls(int(graphs.degree[nodes].max()) if len(nodes) else 0)

    @property
    def limits(self) -> list[int]:
        """Where every bin begins."""
        return bin_limits(self.max_degree)

    @property
    def names(self) -> list[str]:
        return [
            f"degree={name}" if name.isdigit() else f"degree {name}"
            for name in bin_names(self.limits)
        ]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        limits = torch.tensor(self.limits)
        bins = torch.searchsorted(limits, graphs.degree, right=True) - 1
        return one_hot(bins, len(limits)).float()


@dataclass(frozen=True)
class OneHotDegree(BinnedDegree):
    """Which degree it is: every bin is of a single one."""

    @property
    def limits(self) -> list[int]:
        return list(range(self.max_degree + 1))

    @property
    def names(self) -> list[str]:
        return [f"degree={i}" for i in self.limits]


@dataclass(frozen=True)
class Attributes:
    """Attributes less their means, divided by their deviations; zeros and ones stay.

    Args:
        mean: what is subtracted from every column.
        scale: what every column is divided by.
        columns: what every column is called, if anything.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    columns: tuple[str, ...]

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Attributes:
        if graphs.attributes is None:
            raise DataError(f"{graphs.name} has no attributes")
        rows = graphs.attributes[nodes].double()
        binary = ((rows == 0) | (rows == 1)).all(0)
        mean, scale = standard(rows)
        mean, scale = mean.masked_fill(binary, 0), scale.masked_fill(binary, 1)
        return cls(tuple(mean.tolist()), tuple(scale.tolist()), graphs.attribute_columns)

    @property
    def names(self) -> list[str]:
        given = self.columns or ("attr",) * len(self.mean)
        total, seen, made = Counter(given), Counter[str](), []
        for name in given:
            made.append(f"{name}{seen[name]}" if name == "attr" or total[name] > 1 else name)
            seen[name] += 1
        return made

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        width = 0 if graphs.attributes is None else graphs.attributes.size(1)
        if graphs.attributes is None or width != len(self.mean):
            raise DataError(
                f"{graphs.name} has {width} attributes a node, the model needs {len(self.mean)}"
            )
        order = column_order(graphs.name, graphs.attribute_columns, self.columns, width)
        return standardised(graphs.attributes[:, order], self.mean, self.scale)


@dataclass(frozen=True)
class Walks:
    """Return probabilities of random walks less their means, divided by their deviations."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Walks:
        mean, scale = standard(graphs.return_probability[nodes])
        return cls(tuple(mean.tolist()), tuple(scale.tolist()))

    @property
    def names(self) -> list[str]:
        return [f"back after {steps}" for steps in RETURN_STEPS]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return standardised(graphs.return_probability, self.mean, self.scale)


@dataclass(frozen=True)
class Cliques:
    """Shares of maximal cliques by their size, less their means, divided by their deviations.

    Args:
        max_size: the largest clique that is known; a larger one is in the last bin.
        mean: what is subtracted from every column.
        scale: what every column is divided by.
    """

    max_size: int
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Cliques:
        chosen = torch.zeros(graphs.num_nodes, dtype=torch.bool)
        chosen[nodes] = True
        node, size = graphs.clique_members
        max_size = int(size[chosen[node]].max()) if len(nodes) else 1
        mean, scale = standard(_clique_shares(graphs, max_size)[nodes])
        return cls(max_size, tuple(mean.tolist()), tuple(scale.tolist()))

    @property
    def names(self) -> list[str]:
        return [f"cliques of {name}" for name in bin_names(_clique_limits(self.max_size))]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return standardised(_clique_shares(graphs, self.max_size), self.mean, self.scale)


def _clique_limits(max_size: int) -> list[int]:
    """Return where every bin of sizes begins; there is no clique of none."""
    return bin_limits(max_size)[1:]


def _clique_shares(graphs: GraphSet, max_size: int) -> Tensor:
    return clique_shares(graphs.clique_members, graphs.num_nodes, _clique_limits(max_size))


@dataclass(frozen=True)
class Neighbors:
    """Which nodes are the neighbours, in a graph of so many nodes."""

    num_nodes: int

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> Neighbors:
        if graphs.num_graphs != 1:
            raise DataError(
                "'neighbors' is for a set that is a single graph, and "
                f"{graphs.name} has {graphs.num_graphs}"
            )
        return cls(graphs.num_nodes)

    @property
    def names(self) -> list[str]:
        return [f"neighbor {node}" for node in range(self.num_nodes)]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        if graphs.num_graphs != 1 or graphs.num_nodes != self.num_nodes:
            raise DataError(
                f"{graphs.name} has {graphs.num_graphs} graphs and {graphs.num_nodes} nodes: the "
                f"model knows the neighbors in one graph of {self.num_nodes} nodes"
            )
        rows = torch.zeros(self.num_nodes, self.num_nodes)
        rows[tuple(graphs.simple_edges)] = 1
        return rows
