"""Batches of graphs, cut out of the union of a whole set by vectorised indexing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from kergnn._compile import numba_is_missing
from kergnn.data import GraphSet
from kergnn.egographs import EgoGraphs
from kergnn.engine.topology import Topology, cut, topology


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
        if self.x.device.type == "cpu" and not numba_is_missing():
            ego, x, graph_of = self._cut(which)
        else:
            size, nodes = self.size[which], self._nodes(which)
            ego, x = self._select(which), self.x[nodes]
            graph_of = torch.arange(len(which), device=which.device).repeat_interleave(size)
        y = self.y[which if self.task == "graph" else self._nodes(which)]
        return Batch(x, ego, graph_of, len(which), y)

    def _cut(self, which: Tensor) -> tuple[EgoGraphs, Tensor, Tensor]:
        whole, ptr = topology(self.ego), self.ptr.numpy()
        graphs = which.numpy()
        # Compiled code looks no further than this.
        if len(graphs) and not 0 <= graphs.min() <= graphs.max() < len(self.size):
            raise IndexError(f"which must lie in 0 to {len(self.size) - 1}")
        arrays, x, graph_of = cut(whole, ptr, graphs, self.x.numpy())
        ego = _LazyEgoGraphs(Topology(*arrays), lambda: self._select(which))
        return ego, torch.from_numpy(x), torch.from_numpy(graph_of)

    def _nodes(self, which: Tensor) -> Tensor:
        return ranges(self.ptr[which], self.size[which])

    def _select(self, which: Tensor) -> EgoGraphs:
        num_members = self.member_ptr[which + 1] - self.member_ptr[which]
        members = ranges(self.member_ptr[which], num_members)
        edges = ranges(self.edge_ptr[which], self.edge_ptr[which + 1] - self.edge_ptr[which])
        shift = offsets(self.size[which])[:-1] - self.ptr[which]
        return EgoGraphs(
            index=self.ego.index[members] + shift.repeat_interleave(num_members),
            size=self.ego.size[self._nodes(which)],
            hop=self.ego.hop[members],
            degree=self.ego.degree[members],
            neighbor=self.ego.neighbor[edges],
        )


class _LazyEgoGraphs(EgoGraphs):
    """Ego-graphs whose topology is known; their tensors are made when they are asked for.

    The fused engine never asks.
    """

    def __init__(self, known: Topology, make: Callable[[], EgoGraphs]) -> None:
        self.__dict__.update(_topology=known, _make=make)

    def __getattr__(self, name: str) -> Tensor:
        if name not in EgoGraphs.__dataclass_fields__:
            raise AttributeError(name)
        made = self.__dict__["_make"]()
        self.__dict__.update({field: getattr(made, field) for field in made.__dataclass_fields__})
        tensor: Tensor = self.__dict__[name]
        return tensor

    @property
    def num_nodes(self) -> int:
        """Number of ego-graphs, one for each node: N."""
        return topology(self).ptr.size - 1

    @property
    def num_members(self) -> int:
        """Number of members of all ego-graphs together: T."""
        return topology(self).node.size

    @cached_property
    def max_hop(self) -> int:
        """Largest hop distance that occurs."""
        return int(topology(self).hop.max(initial=0))


def offsets(counts: Tensor) -> Tensor:
    """Return 0, counts[0], counts[0] + counts[1], ..."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """Return start[0] .. start[0] + count[0] - 1, then the same for 1, 2, ..."""
    first = offsets(count)
    total = int(first[-1])
    shift = (start - first[:-1]).repeat_interleave(count, output_size=total)
    return torch.arange(total, device=start.device) + shift
