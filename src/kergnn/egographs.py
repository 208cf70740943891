r"""Ego-graphs: the neighbourhood subgraph :math:`G_v` of every node, in ragged form.

:math:`G_v` is the subgraph induced by :math:`v` and the nodes within ``num_hops`` hops of it. The
ego-graphs of a graph are stored as counts and local positions, never as offsets, so that the
ego-graphs of a batch are the concatenation of those of its graphs; only the node ids move.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from kergnn._checks import check_edge_index, check_integer
from kergnn.egobuilder import build


@dataclass(frozen=True)
class EgoGraphs:
    r"""The ego-graphs of all nodes of a graph (or of a batch of graphs).

    With :math:`N` nodes, :math:`T = \sum_v |G_v|` members in all ego-graphs together and :math:`S`
    directed edges in all ego-graphs together:

    Args:
        index: (T,) node of every member; the members of :math:`G_0` first, then :math:`G_1`, ...
        size: (N,) number of members of every ego-graph.
        hop: (T,) hop distance of every member from its centre.
        degree: (T,) number of neighbours of every member within its ego-graph.
        neighbor: (S,) those neighbours, as ascending positions within the ego-graph, member after
            member.

    Members are ordered by hop distance, so the centre comes first. Within one hop the node with
    the larger degree in the whole graph comes first and, at equal degree, the smaller node id.
    ``max_nodes`` cuts this list: nearer nodes stay. Row order is the same for features
    (``x[ego.index]``) and adjacency (``ego.edge_index``).
    """

    index: Tensor
    size: Tensor
    hop: Tensor
    degree: Tensor
    neighbor: Tensor

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        num_hops: int = 1,
        max_nodes: int | None = None,
    ) -> EgoGraphs:
        """Build the ego-graphs of all nodes.

        The graph is taken as undirected and simple: edges given in one direction count in both,
        double edges count once, self-loops do not count.

        Args:
            edge_index: (2, E) integer tensor.
            num_nodes: number of nodes, isolated ones included.
            num_hops: radius of the ego-graphs.
            max_nodes: largest size of an ego-graph, the centre included; ``None`` for no limit.
        """
        num_nodes = check_integer("num_nodes", num_nodes, minimum=0)
        num_hops = check_integer("num_hops", num_hops, minimum=0)
        if max_nodes is not None:
            max_nodes = check_integer("max_nodes", max_nodes, minimum=1)
        check_edge_index(edge_index, num_nodes)
        limit = num_nodes if max_nodes is None else min(max_nodes, num_nodes)

        arrays = build(edge_index.cpu().numpy(), num_nodes, num_hops, limit)
        return cls(*(torch.from_numpy(a) for a in arrays)).to(edge_index.device)

    @classmethod
    def from_data(cls, data: Data) -> EgoGraphs:
        """Read what :class:`EgoSubgraphs` stored on a ``Data`` or a ``Batch``."""
        names = {f.name: f"ego_{f.name}" for f in fields(cls)}
        missing = [key for key in names.values() if key not in data]
        if missing:
            raise ValueError(
                f"data has no {', '.join(missing)}: apply the transform EgoSubgraphs first"
            )
        return cls(**{name: data[key] for name, key in names.items()})

    @classmethod
    def cat(cls, egos: Iterable[EgoGraphs]) -> EgoGraphs:
        """Return the ego-graphs of the disjoint union of several graphs."""
        egos = list(egos)
        if not egos:
            raise ValueError("egos is empty: at least one EgoGraphs is needed")
        offset, index = 0, []
        for ego in egos:
            index.append(ego.index + offset)
            offset += ego.num_nodes
        rest = ((getattr(ego, f.name) for ego in egos) for f in fields(cls)[1:])
        return cls(torch.cat(index), *(torch.cat(tuple(tensors)) for tensors in rest))

    def to(self, device: torch.device | str) -> EgoGraphs:
        """Return the same ego-graphs on another device."""
        if torch.device(device) == self.index.device:
            return self
        return EgoGraphs(*(getattr(self, f.name).to(device) for f in fields(self)))

    @property
    def num_nodes(self) -> int:
        """Number of ego-graphs, one for each node: N."""
        return self.size.size(0)

    @property
    def num_members(self) -> int:
        """Number of members of all ego-graphs together: T."""
        return self.index.size(0)

    @cached_property
    def max_hop(self) -> int:
        """Largest hop distance that occurs."""
        return int(self.hop.max()) if self.num_members else 0

    @cached_property
    def ptr(self) -> Tensor:
        """(N + 1,) the members of ego-graph v are ``ptr[v]`` up to ``ptr[v + 1]``."""
        return torch.cat([self.size.new_zeros(1), self.size.cumsum(0)])

    @cached_property
    def center(self) -> Tensor:
        """(T,) the node whose ego-graph a member belongs to."""
        nodes = torch.arange(self.num_nodes, device=self.size.device)
        return nodes.repeat_interleave(self.size, output_size=self.num_members)

    @cached_property
    def edge_index(self) -> Tensor:
        """(2, S) edges of all ego-graphs, both directions, between rows of the member list."""
        rows = torch.arange(self.num_members, device=self.degree.device)
        row = rows.repeat_interleave(self.degree, output_size=self.neighbor.size(0))
        return torch.stack([row, self.neighbor + self.ptr[self.center[row]]])

    def __getitem__(self, node: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return one ego-graph: its nodes (n,), their hops (n,), its edge index (2, e)."""
        if not 0 <= node < self.num_nodes:
            raise IndexError(f"node is {node}, but there are {self.num_nodes} ego-graphs")
        start, stop = int(self.ptr[node]), int(self.ptr[node + 1])
        degree = self.degree[start:stop]
        first = int(self.degree[:start].sum())
        col = self.neighbor[first : first + int(degree.sum())]
        row = torch.arange(stop - start, device=col.device).repeat_interleave(degree)
        return self.index[start:stop], self.hop[start:stop], torch.stack([row, col])

    def __len__(self) -> int:
        return self.num_nodes

    def __repr__(self) -> str:
        return (
            f"EgoGraphs(num_nodes={self.num_nodes}, num_members={self.num_members}, "
            f"num_edges={self.neighbor.size(0)})"
        )


class EgoSubgraphs(BaseTransform):  # type: ignore[misc]
    r"""PyG transform that stores the ego-graphs of all nodes on a ``Data`` object.

    The five tensors of :class:`EgoGraphs` are stored as ``ego_index``, ``ego_size``, ``ego_hop``,
    ``ego_degree`` and ``ego_neighbor``. They need no collation rule beyond PyG's own (names with
    "index" are shifted by the number of nodes, everything else is concatenated), so every loader
    and data set class of PyG handles them. Get them back with :meth:`EgoGraphs.from_data`.

    Args:
        num_hops: radius of the ego-graphs.
        max_nodes: largest size of an ego-graph, the centre included; ``None`` for no limit.
    """

    def __init__(self, num_hops: int = 1, max_nodes: int | None = None) -> None:
        self.num_hops = check_integer("num_hops", num_hops, minimum=0)
        self.max_nodes = (
            None if max_nodes is None else check_integer("max_nodes", max_nodes, minimum=1)
        )

    def forward(self, data: Data) -> Data:
        """Add the five ``ego_*`` tensors."""
        if data.edge_index is None:
            raise ValueError("data.edge_index is missing: EgoSubgraphs needs an edge index")
        ego = EgoGraphs.from_edge_index(
            data.edge_index, data.num_nodes, self.num_hops, self.max_nodes
        )
        for f in fields(ego):
            data[f"ego_{f.name}"] = getattr(ego, f.name)
        return data

    def __repr__(self) -> str:
        return f"EgoSubgraphs(num_hops={self.num_hops}, max_nodes={self.max_nodes})"
