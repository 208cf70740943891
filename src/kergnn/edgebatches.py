"""Batches of graphs with their edges, for networks that pass messages along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kergnn.batches import offsets, ranges
from kergnn.data import GraphSet


@dataclass(frozen=True)
class EdgeBatch:
    """Some graphs of a set; the edge index is sorted, without loops, with both directions.

    ``edge_attr`` are the features of the edges, for a network that takes them.
    """

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    num_graphs: int
    y: Tensor
    edge_attr: Tensor | None = None

    @property
    def inputs(self) -> tuple[Any, ...]:
        """What a network for graphs is called with; one for nodes takes the first two."""
        given = self.x, self.edge_index, self.batch, self.num_graphs
        return given if self.edge_attr is None else (*given, self.edge_attr)


class EdgeBatches:
    """Cuts batches of graphs out of the union of a whole set, without a loop over graphs."""

    def __init__(
        self, graphs: GraphSet, x: Tensor, device: torch.device, edge_attr: Tensor | None = None
    ) -> None:
        self.task = graphs.task
        self.size, self.ptr = graphs.size.to(device), graphs.ptr.to(device)
        self.x, self.y = x.to(device), graphs.y.to(device)
        self.edge_index = graphs.simple_edges.to(device)
        counts = graphs.graph_of[graphs.simple_edges[0]].bincount(minlength=graphs.num_graphs)
        self.edge_ptr = offsets(counts).to(device)
        self.edge_attr = None if edge_attr is None else edge_attr.to(device)

    def __call__(self, which: Tensor) -> EdgeBatch:
        """Return the graphs ``which`` (G,) as a batch, in this order."""
        y = self.y
        graph_of = torch.arange(len(which), device=which.device)
        if len(which) == len(self.size) == 1:  # one graph, batch after batch: no copies
            all_nodes = graph_of.expand(len(self.x))
            return EdgeBatch(self.x, self.edge_index, all_nodes, 1, y, self.edge_attr)
        size = self.size[which]
        num_edges = self.edge_ptr[which + 1] - self.edge_ptr[which]
        nodes = ranges(self.ptr[which], size)
        shift = (offsets(size)[:-1] - self.ptr[which]).repeat_interleave(num_edges)
        entries = ranges(self.edge_ptr[which], num_edges)
        edges = self.edge_index[:, entries] + shift
        y = y[which if self.task == "graph" else nodes]
        edge_attr = None if self.edge_attr is None else self.edge_attr[entries]
        owner = graph_of.repeat_interleave(size)
        return EdgeBatch(self.x[nodes], edges, owner, len(which), y, edge_attr)
