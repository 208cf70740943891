"""Batches of graphs, cut out of the union of a whole set by vectorised indexing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kergnn.data import GraphSet
from kergnn.egographs import EgoGraphs


@dataclass(frozen=True)
class Batch:
    """Some graphs of a set, ready for the model."""

    x: Tensor
    ego: EgoGraphs
    batch: Tensor
    num_graphs: int
    y: Tensor

    @property
    def inputs(self) -> tuple[Tensor, EgoGraphs, Tensor, int]:
        """What a model for graphs is called with; one for nodes takes the first two."""
        return self.x, self.ego, self.batch, self.num_graphs


class GraphBatches:
    """Cuts batches of graphs out of the union of a whole set, without a loop over graphs."""

    def __init__(self, graphs: GraphSet, x: Tensor, ego: EgoGraphs, device: torch.device) -> None:
        self.task = graphs.task
        self.size, self.ptr = graphs.size.to(device), graphs.ptr.to(device)
        self.x, self.y, self.ego = x.to(device), graphs.y.to(device), ego.to(device)
        # Members and edges of a graph lie together: a batch is a few ranges, not a list of nodes.
        self.member_ptr = self.ego.ptr[self.ptr]
        self.edge_ptr = offsets(self.ego.degree)[self.member_ptr]

    def __call__(self, which: Tensor) -> Batch:
        """Return the graphs ``which`` (G,) as a batch, in this order."""
        size = self.size[which]
        num_members = self.member_ptr[which + 1] - self.member_ptr[which]
        num_edges = self.edge_ptr[which + 1] - self.edge_ptr[which]
        nodes = ranges(self.ptr[which], size)
        members = ranges(self.member_ptr[which], num_members)
        edges = ranges(self.edge_ptr[which], num_edges)
        shift = offsets(size)[:-1] - self.ptr[which]
        ego = EgoGraphs(
            index=self.ego.index[members] + shift.repeat_interleave(num_members),
            size=self.ego.size[nodes],
            hop=self.ego.hop[members],
            degree=self.ego.degree[members],
            neighbor=self.ego.neighbor[edges],
        )
        graph_of = torch.arange(len(which), device=which.device).repeat_interleave(size)
        y = self.y[which if self.task == "graph" else nodes]
        return Batch(self.x[nodes], ego, graph_of, len(which), y)


def offsets(counts: Tensor) -> Tensor:
    """Return 0, counts[0], counts[0] + counts[1], ..."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """Return start[0] .. start[0] + count[0] - 1, then the same for 1, 2, ..."""
    first = offsets(count)
    total = int(first[-1])
    shift = (start - first[:-1]).repeat_interleave(count, output_size=total)
    return torch.arange(total, device=start.device) + shift
