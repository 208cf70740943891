"""A set of graphs as a few tensors: the disjoint union of the graphs, and what is known of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from kergnn.data.cliques import CliqueError, clique_members
from kergnn.data.returns import return_probabilities

Task: TypeAlias = Literal["graph", "node"]


# Attributes are kept in double precision and become single precision once they are standardised.
LARGEST = 1e30


class DataError(ValueError):
    """Data that cannot be used; the message names the file, the line and the value."""


@dataclass(frozen=True, repr=False)
class GraphSet:
    """G graphs with N nodes and E edge entries in all.

    Args:
        name: what the set is called.
        task: ``"graph"`` where graphs have classes, ``"node"`` where nodes have.
        size: (G,) number of nodes of every graph.
        edge_index: (2, E) edges between the nodes of the union, as they were given.
        y: (G,) or (N,) class of every graph or node, -1 where it is not known.
        class_names: the classes by their original names.
        labels: (N, L) discrete node labels, as positions in ``label_names``.
        label_names: for each of the L label columns the original names of its labels.
        label_columns: the names of the L label columns, where they have any.
        attributes: (N, A) continuous node attributes.
        attribute_columns: the names of the A attribute columns; one name may have several.
        edge_values: by name, E values of the entries of ``edge_index``, None where an edge has
            none. They are kept for the way back to other libraries and for the competitor ``ecc``:
            no kernel looks at them, and they have a fingerprint of their own.
        source: where the set was found.
        ids: the graphs' own names, where they have any.
        node_truth: (N,) whether a node belongs to what decides the class, where that is known.
        edge_truth: (E,) the same for the entries of ``edge_index``.
    """

    name: str
    task: Task
    size: Tensor
    edge_index: Tensor
    y: Tensor
    class_names: tuple[str, ...]
    labels: Tensor | None = None
    label_names: tuple[tuple[str, ...], ...] = ()
    label_columns: tuple[str, ...] = ()
    attributes: Tensor | None = None
    attribute_columns: tuple[str, ...] = ()
    edge_values: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    source: str = ""
    ids: tuple[str, ...] = ()
    node_truth: Tensor | None = None
    edge_truth: Tensor | None = None

    def __repr__(self) -> str:
        return (
            f"GraphSet({self.name!r}, task={self.task!r}, num_graphs={self.num_graphs}, "
            f"num_nodes={self.num_nodes}, num_classes={self.num_classes})"
        )

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return self.size.size(0)

    @cached_property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return int(self.size.sum())

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def __len__(self) -> int:
        return self.num_graphs

    def __getitem__(self, graph: int) -> GraphSet:
        """Return one graph as a set of its own."""
        if not -self.num_graphs <= graph < self.num_graphs:
            raise IndexError(f"graph is {graph}, but there are {self.num_graphs} graphs")
        return self.select(torch.tensor([graph % self.num_graphs]))

    @cached_property
    def ptr(self) -> Tensor:
        """(G + 1,) the nodes of graph g are ``ptr[g]`` up to ``ptr[g + 1]``."""
        return torch.cat([self.size.new_zeros(1), self.size.cumsum(0)])

    @cached_property
    def graph_of(self) -> Tensor:
        """(N,) the graph of every node."""
        return torch.arange(self.num_graphs).repeat_interleave(self.size)

    @cached_property
    def edge_positions(self) -> tuple[Tensor, ...]:
        """Where in ``edge_index`` the entries of every graph are."""
        graph_of_edge = self.graph_of[self.edge_index[0]]
        counts = graph_of_edge.bincount(minlength=self.num_graphs)
        return torch.split(graph_of_edge.argsort(stable=True), counts.tolist())

    @cached_property
    def simple_edges(self) -> Tensor:
        """(2, E') the edges in both directions, sorted, each once, loops not at all."""
        # Not numpy's unique: newer ones hash numbers, which takes twenty times as long as sorting.
        code = torch.from_numpy(np.sort(self._edge_codes(self._no_loops).numpy()))
        code = torch.unique_consecutive(code)
        count = max(self.num_nodes, 1)
        return torch.stack([code // count, code % count])

    @cached_property
    def simple_entries(self) -> Tensor:
        """(E',) the first entry of ``edge_index`` for each of ``simple_edges``.

        An edge that is there in one direction only is that of the other direction, too.
        """
        entries = self._no_loops
        first = np.unique(self._edge_codes(entries).numpy(), return_index=True)[1]
        return entries.repeat(2)[torch.from_numpy(first)]

    @property
    def _no_loops(self) -> Tensor:
        return (self.edge_index[0] != self.edge_index[1]).nonzero().flatten()

    def _edge_codes(self, entries: Tensor) -> Tensor:
        """Return a number for every direction of some entries, all as given first."""
        row, col = self.edge_index[:, entries]
        return torch.cat([row * self.num_nodes + col, col * self.num_nodes + row])

    @cached_property
    def degree(self) -> Tensor:
        """(N,) number of neighbours, each counted once and in both directions, loops not at all."""
        return torch.bincount(self.simple_edges[0], minlength=self.num_nodes)

    @cached_property
    def return_probability(self) -> Tensor:
        """(N, 11) how likely a random walk is back after 2 to 12 steps."""
        return return_probabilities(self.simple_edges, self.degree)

    @cached_property
    def clique_members(self) -> Tensor:
        """(2, K) every membership in a maximal clique: the node and the size of the clique."""
        made = [torch.empty(2, 0, dtype=torch.long)]
        counts = self.degree.new_zeros(self.num_graphs)
        counts.index_add_(0, self.graph_of, self.degree)
        edges = torch.split(self.simple_edges, counts.tolist(), dim=1)
        graphs = zip(self.ptr[:-1].tolist(), self.size.tolist(), edges, strict=True)
        for graph, (first, size, own) in enumerate(graphs):
            try:
                found = clique_members(own - first, size)
            except CliqueError as error:
                raise DataError(
                    f"{self.name}, graph {graph} (from 0) has {error}, too many for the recipe "
                    "'cliques'"
                ) from None
            made.append(found + torch.tensor([[first], [0]]))
        return torch.cat(made, dim=1)

    def select(self, which: Tensor) -> GraphSet:
        """Return the graphs ``which`` (ascending positions) as a set of their own."""
        kept = torch.zeros(self.num_graphs, dtype=torch.bool)
        kept[which] = True
        node = kept[self.graph_of]
        edge = node[self.edge_index[0]]
        position = node.cumsum(0) - 1
        part = replace(
            self,
            size=self.size[kept],
            edge_index=position[self.edge_index[:, edge]],
            y=self.y[kept if self.task == "graph" else node],
            labels=None if self.labels is None else self.labels[node],
            attributes=None if self.attributes is None else self.attributes[node],
            edge_values={name: values[edge.numpy()] for name, values in self.edge_values.items()},
            ids=tuple(name for name, keep in zip(self.ids, kept.tolist(), strict=False) if keep),
            node_truth=None if self.node_truth is None else self.node_truth[node],
            edge_truth=None if self.edge_truth is None else self.edge_truth[edge],
        )
        # Sorting the edges of a large set takes seconds: once for all large parts, such as folds.
        if "simple_edges" in self.__dict__ or 2 * part.num_graphs > self.num_graphs:
            simple = self.simple_edges[:, node[self.simple_edges[0]]]
            part.__dict__["simple_edges"] = position[simple]
        # Finding the cliques of a large set takes seconds: once for all parts.
        if "clique_members" in self.__dict__:
            node_of, size = self.clique_members[:, node[self.clique_members[0]]]
            part.__dict__["clique_members"] = torch.stack([position[node_of], size])
        return part

    def to_data_list(self, x: Tensor) -> list[Data]:
        """Return the graphs as PyG ``Data`` objects with the node features ``x`` (N, d).

        They carry ``node_truth`` and ``edge_truth`` where the set does.
        """
        edges = [self.edge_index[:, entries] for entries in self.edge_positions]
        nodes = torch.split(x, self.size.tolist())
        y = torch.split(self.y, 1 if self.task == "graph" else self.size.tolist())
        made = [
            Data(x=nodes[g], edge_index=edges[g] - self.ptr[g], y=y[g])
            for g in range(self.num_graphs)
        ]
        if self.node_truth is not None:
            for data, truth in zip(
                made, torch.split(self.node_truth, self.size.tolist()), strict=True
            ):
                data.node_truth = truth
        if self.edge_truth is not None:
            for data, entries in zip(made, self.edge_positions, strict=True):
                data.edge_truth = self.edge_truth[entries]
        return made

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: equal for equal graphs, whatever file they came from."""
        digest = hashlib.sha256(repr((self.task, self.class_names, self.label_names)).encode())
        # A set without a truth keeps the fingerprint it had before there were any.
        truths = [t for t in (self.node_truth, self.edge_truth) if t is not None]
        for tensor in (self.size, self.edge_index, self.y, self.labels, self.attributes, *truths):
            if tensor is None:
                digest.update(b"none")
            else:
                digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def edge_fingerprint(self) -> str:
        """A hash of what the edges have, empty where they have nothing."""
        if not self.edge_values:
            return ""
        values = [(name, column.tolist()) for name, column in sorted(self.edge_values.items())]
        return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def encode(values: list[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Return positions in the sorted names, and the names; numbers are sorted as numbers."""
    names = tuple(sorted(set(values), key=_natural))
    position = {name: i for i, name in enumerate(names)}
    return torch.tensor([position[v] for v in values], dtype=torch.long), names


def _natural(name: str) -> tuple[bool, int, str]:
    try:
        return False, int(name), name
    except ValueError:
        return True, 0, name
