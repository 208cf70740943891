r"""What every node, edge and walk of an ego-graph contributes to a kernel value, exactly.

A kernel value is a sum over walks of p steps in the ego-graph (and in the filter). With
:math:`S = X W^T` and :math:`\odot` elementwise, let

.. math::
    \text{rw: } L_q = R_q = A^q S B^q, \qquad
    \text{drw: } L_q = A^q (w \odot S) B^q,\; R_q = A^q S B^q, \qquad
    \text{rw-step: } L_q = R_q = S \odot (A R_{q-1} B)

be the sums over the walks that end (or begin) at a node after q steps. Then, for every q,

.. math:: K_p = \sum_{u \sim w} \langle (L_q B)_u, (R_{p-1-q})_w \rangle

is the sum over the walks whose step q goes from u to w. A walk gives the p-th part of its value to
each edge it goes over; half of it to each of its ends where only these are compared (``rw``,
``drw``), and an equal part to each of its nodes where all are (``rw-step``). So the contributions
of the nodes, of the edges (for p > 0) and of the walks each sum to :math:`K_p`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kergnn._checks import check_choice, check_integer
from kergnn.egographs import EgoGraphs
from kergnn.kernels.ragged import gather, similarity, sum_members

WALK_KERNELS = ("rw", "rw-step", "drw")
KERNELS = (*WALK_KERNELS, "gcn")


@dataclass(frozen=True)
class WalkStates:
    """The sums over walks that a kernel is made of.

    Args:
        kernel: ``"rw"``, ``"rw-step"`` or ``"drw"``.
        left: L_0 to L_P, each (T, D, m).
        right: R_0 to R_P, each (T, D, m).
        similarity: (T, D, m) the similarities S.
        adjacency: (D, m, m) the filters' B.
        ego: the ego-graphs.
        edge_weight: (S,) of the edges of the ego-graphs, ``None`` for ones.
    """

    kernel: str
    left: list[Tensor]
    right: list[Tensor]
    similarity: Tensor
    adjacency: Tensor
    ego: EgoGraphs
    edge_weight: Tensor | None = None

    def values(self) -> Tensor:
        """Return every K_p: (P + 1, N, D)."""
        if self.kernel == "rw-step":
            terms = [state.sum(-1) for state in self.left]
        else:
            terms = [(self.left[0] * state).sum(-1) for state in self.right]
        return torch.stack([sum_members(term, self.ego) for term in terms])

    def nodes(self) -> Tensor:
        """Return what every member contributes to every K_p: (P + 1, T, D)."""
        left, right = self.left, self.right
        if self.kernel != "rw-step":
            # A walk and its reverse: the two ends take half each.
            pairs = zip(left, right, strict=True)
            return torch.stack([(left[0] * r + el * right[0]).sum(-1) / 2 for el, r in pairs])
        # What continues a walk, without the similarity at the node itself.
        rest = [torch.ones_like(self.similarity)]
        rest += [self._step(state) for state in left[:-1]]
        made = []
        for p in range(len(left)):
            through = [left[q] * rest[p - q] for q in range(p + 1)]
            made.append(torch.stack(through).sum(0).sum(-1) / (p + 1))
        return torch.stack(made)

    def edges(self, p: int) -> Tensor:
        """Return what every edge of the ego-graphs contributes to K_p: (S, D); none to K_0."""
        row, col = self.ego.edge_index
        total = self.similarity.new_zeros(row.size(0), self.adjacency.size(0))
        for q in range(p):
            left = torch.einsum("tia,iab->tib", self.left[q], self.adjacency)
            total = total + (left[row] * self.right[p - 1 - q][col]).sum(-1)
        if self.edge_weight is not None:
            total = total * self.edge_weight.unsqueeze(-1)
        return total / max(p, 1)

    def _step(self, state: Tensor) -> Tensor:
        return _step(state, self.ego, self.adjacency, self.edge_weight)


def walk_states(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    *,
    hop_weight: Tensor | None = None,
    edge_weight: Tensor | None = None,
    member_weight: Tensor | None = None,
) -> WalkStates:
    """Return the sums over walks of a kernel, for all ego-graphs and filters at once.

    Args:
        kernel: ``"rw"``, ``"rw-step"`` or ``"drw"``.
        x: (N, d) node features.
        ego: the ego-graphs.
        adjacency: (D, m, m) of the filters.
        attributes: (D, m, d) of the filters.
        num_steps: the longest walk P.
        hop_weight: (D, H + 1, m) the weights of ``drw``.
        edge_weight: (S,) symmetric weights of the edges of the ego-graphs, ``None`` for ones.
        member_weight: (T,) weights of the members, ``None`` for ones.
    """
    check_choice("kernel", kernel, WALK_KERNELS)
    S = gather(similarity(x, attributes), ego)
    if member_weight is not None:
        S = S * member_weight.view(-1, 1, 1)
    right = [S]
    for _ in range(num_steps):
        state = _step(right[-1], ego, adjacency, edge_weight)
        right.append(S * state if kernel == "rw-step" else state)
    left = right
    if kernel == "drw":
        if hop_weight is None:
            raise ValueError("hop_weight is missing: kernel 'drw' needs it")
        left = [S * hop_weight.transpose(0, 1).index_select(0, ego.hop)]
        for _ in range(num_steps):
            left.append(_step(left[-1], ego, adjacency, edge_weight))
    return WalkStates(kernel, left, right, S, adjacency, ego, edge_weight)


def node_contributions(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    **parameters: Tensor,
) -> Tensor:
    """Return what every member of every ego-graph contributes to every K_p: (P + 1, T, D).

    Summed over the members of an ego-graph this is the kernel value. For ``gcn``, which has one
    term and no walks, it is the summand of the member: (1, T, D). Arguments are those of the
    kernels, see :mod:`kergnn.kernels`.
    """
    check_choice("kernel", kernel, KERNELS)
    if kernel == "gcn":
        scale = ego.size.to(x.dtype).rsqrt()
        terms = gather(scale.unsqueeze(-1) * similarity(x, attributes).squeeze(-1), ego)
        return (scale[ego.center].unsqueeze(-1) * terms).unsqueeze(0)
    return walk_states(kernel, x, ego, adjacency, attributes, num_steps, **parameters).nodes()


def edge_contributions(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    **parameters: Tensor,
) -> Tensor:
    """Return what every edge of every ego-graph contributes to every K_p: (P + 1, S, D).

    Edges are directed, in the order of ``ego.edge_index``; a walk of p steps gives the p-th part of
    its value to each, so that for p > 0 they sum to the kernel value. K_0 and ``gcn`` go over no
    edge. Arguments are those of the kernels, see :mod:`kergnn.kernels`.
    """
    check_choice("kernel", kernel, KERNELS)
    if kernel == "gcn":
        return x.new_zeros(1, ego.edge_index.size(1), attributes.size(0))
    states = walk_states(kernel, x, ego, adjacency, attributes, num_steps, **parameters)
    return torch.stack([states.edges(p) for p in range(num_steps + 1)])


def walk_contributions(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    *,
    node: int,
    filter: int,
    max_walks: int = 100_000,
    hop_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return all walks of ``num_steps`` steps in one ego-graph and what each contributes to K_p.

    Args:
        kernel, x, ego, adjacency, attributes, num_steps, hop_weight: see :func:`walk_states`.
        node: whose ego-graph.
        filter: number of the filter.
        max_walks: refuse to list more than these.

    Returns:
        the walks (number, p + 1), as nodes of the graph, and their values (number,), which sum to
        :math:`K_p(G_v, H_i)`.
    """
    check_choice("kernel", kernel, WALK_KERNELS)
    num_steps = check_integer("num_steps", num_steps, minimum=0)
    nodes, hops, (row, col) = ego[node]
    walks = torch.arange(len(nodes)).unsqueeze(1)
    degree = torch.bincount(row, minlength=len(nodes))
    first = degree.cumsum(0) - degree
    for _ in range(num_steps):
        last = walks[:, -1]
        count = degree[last]
        total = int(count.sum())
        if total > max_walks:
            raise ValueError(f"num_steps is {num_steps}: there are more than {max_walks} walks")
        place = torch.arange(total) - (count.cumsum(0) - count).repeat_interleave(count)
        step = col[first[last].repeat_interleave(count) + place]
        walks = torch.cat([walks.repeat_interleave(count, 0), step.unsqueeze(1)], dim=1)
    S, B = x[nodes] @ attributes[filter].T, adjacency[filter]
    state = S[walks[:, 0]]
    if kernel == "drw":
        if hop_weight is None:
            raise ValueError("hop_weight is missing: kernel 'drw' needs it")
        state = state * hop_weight[filter][hops[walks[:, 0]]]
    for q in range(1, num_steps + 1):
        state = state @ B
        if kernel == "rw-step":
            state = state * S[walks[:, q]]
    if kernel != "rw-step":
        state = state * S[walks[:, -1]]
    return nodes[walks], state.sum(-1)


def _step(state: Tensor, ego: EgoGraphs, adjacency: Tensor, edge_weight: Tensor | None) -> Tensor:
    """Return A U B within every ego-graph: (T, D, m)."""
    row, col = ego.edge_index
    moved = state.index_select(0, col)
    if edge_weight is not None:
        moved = moved * edge_weight.view(-1, 1, 1)
    summed = torch.zeros_like(state).index_add(0, row, moved)
    return torch.einsum("tia,iab->tib", summed, adjacency)
