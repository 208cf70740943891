"""Brute-force oracles, graph makers and assertions that the tests of any kernel reuse.

The oracles spell the formulas out, as slowly and as plainly as possible, in differentiable torch:
autograd through them gives the oracle of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import torch
from torch import Tensor, nn

from kergnn.egographs import EgoGraphs
from kergnn.engine import evaluate
from kergnn.kernels import get_kernel

PairOracle = Callable[..., Tensor]


def kronecker_kernel(A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int) -> Tensor:
    r"""Return :math:`s^T (B^p \otimes A^p) s` with :math:`s = \mathrm{vec}(X W^T)`, explicitly.

    Args:
        A: (n, n) adjacency of the graph.
        X: (n, d) its features.
        B: (m, m) adjacency of the filter.
        W: (m, d) its attributes.
        p: length of the walks.
    """
    s = (X @ W.T).T.reshape(-1)  # vec stacks columns
    product = torch.kron(torch.matrix_power(B, p), torch.matrix_power(A, p))
    return s @ product @ s


def deep_kronecker_kernel(
    A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int, weight: Tensor
) -> Tensor:
    r"""Return :math:`(\mathrm{vec}(w) \odot s)^T (B^p \otimes A^p) s`; ``weight`` is (n, m)."""
    s = (X @ W.T).T.reshape(-1)
    product = torch.kron(torch.matrix_power(B, p), torch.matrix_power(A, p))
    return (weight.T.reshape(-1) * s) @ product @ s


def walks(adjacency: Tensor, length: int) -> Tensor:
    """Return every walk of ``length`` steps, one row of nodes each: (number of walks, p + 1)."""
    nodes = range(adjacency.size(0))
    paths = [[node] for node in nodes]
    for _ in range(length):
        paths = [[*path, node] for path in paths for node in nodes if adjacency[path[-1], node]]
    return torch.tensor(paths, dtype=torch.long).reshape(-1, length + 1)


def enumerated_returns(adjacency: Tensor, length: int) -> Tensor:
    """The probability that a random walk from every node is back after ``length`` steps: (n,).

    Every walk is listed, with the product of one over the degrees that it leaves.
    """
    back = torch.zeros(len(adjacency), dtype=torch.float64)
    for walk in walks(adjacency, length):
        if walk[0] == walk[-1]:
            back[walk[0]] += 1 / adjacency[walk[:-1]].sum(1).double().prod()
    return back


def enumerated_walk_kernel(A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int) -> Tensor:
    """Sum over all pairs of p-step walks: the product of the similarities of their nodes at every
    step, times the weights of the filter edges walked over.
    """
    S = X @ W.T
    left = walks(A, p)
    right = walks(1 - torch.eye(B.size(0)), p)  # an edge of weight zero still has a derivative
    similarities = S[left.unsqueeze(1), right.unsqueeze(0)].prod(-1)
    return (similarities * B[right[:, :-1], right[:, 1:]].prod(-1)).sum()


def enumerated_contributions(
    kernel: str, A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int, weight: Tensor | None = None
) -> tuple[Tensor, Tensor, dict[tuple[int, ...], Tensor]]:
    """Share out every pair of p-step walks by hand, among nodes (n,), edges (n, n) and walks.

    Args:
        kernel: ``"rw"``, ``"rw-step"`` or ``"drw"``.
        A, X, B, W, p: see :func:`kronecker_kernel`.
        weight: (n, m) the weights of ``drw``.
    """
    S = X @ W.T
    nodes, edges, by_walk = X.new_zeros(len(A)), torch.zeros_like(A), {}
    others = walks(1 - torch.eye(len(B)), p).tolist()
    for walk in walks(A, p).tolist():
        total = X.new_zeros(())
        for other in others:
            matched = [(0, 0), (p, p)] if kernel != "rw-step" else [(q, q) for q in range(p + 1)]
            value = X.new_ones(()) if weight is None else weight[walk[0], other[0]]
            for q, r in matched:
                value = value * S[walk[q], other[r]]
            for b, c in pairwise(other):
                value = value * B[b, c]
            total = total + value
        places = [walk[0], walk[-1]] if kernel != "rw-step" else walk
        for a in places:
            nodes[a] += total / len(places)
        for a, b in pairwise(walk):
            edges[a, b] += total / p
        by_walk[tuple(walk)] = total
    return nodes, edges, by_walk


def ego_graph(
    edge_index: Tensor, num_nodes: int, node: int, num_hops: int = 1, max_nodes: int | None = None
) -> tuple[list[int], list[int], np.ndarray[Any, Any]]:
    """Return nodes, hop distances and dense adjacency of one ego-graph, by networkx."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((a, b) for a, b in edge_index.T.tolist() if a != b)
    distance = nx.single_source_shortest_path_length(graph, node, cutoff=num_hops)
    nodes = sorted(distance, key=lambda u: (distance[u], -graph.degree(u), u))[:max_nodes]
    adjacency = nx.to_numpy_array(graph, nodelist=nodes)
    return nodes, [distance[u] for u in nodes], adjacency


def random_graph(
    num_nodes: int, probability: float = 0.4, seed: int = 0, num_features: int = 3
) -> tuple[Tensor, Tensor]:
    """Return float64 features (n, d) and the edge index of an Erdos-Renyi graph."""
    generator = torch.Generator().manual_seed(seed)
    keep = torch.rand(num_nodes, num_nodes, generator=generator) < probability
    edge_index = keep.triu(1).nonzero().T
    x = torch.randn(num_nodes, num_features, generator=generator, dtype=torch.float64)
    return x, torch.cat([edge_index, edge_index.flip(0)], dim=1)


def random_filters(
    num_filters: int, filter_size: int, num_features: int = 3, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return float64 adjacency (D, m, m) and attributes (D, m, d); some edges are absent."""
    generator = torch.Generator().manual_seed(seed)
    options: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    upper = torch.rand(num_filters, filter_size, filter_size, **options).triu(1)
    upper = upper * (upper > 0.3)
    attributes = torch.randn(num_filters, filter_size, num_features, **options)
    return upper + upper.transpose(1, 2), attributes


def brute_force(
    oracle: PairOracle,
    x: Tensor,
    edge_index: Tensor,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    num_hops: int = 1,
    max_nodes: int | None = None,
    hop_weight: Tensor | None = None,
) -> Tensor:
    """Evaluate a pairwise oracle on every ego-graph, filter and number of steps: (P + 1, N, D)."""
    values = []
    for v in range(x.size(0)):
        nodes, hops, dense = ego_graph(edge_index, x.size(0), v, num_hops, max_nodes)
        A = torch.from_numpy(dense).to(x.dtype)
        for i in range(adjacency.size(0)):
            extra = () if hop_weight is None else (hop_weight[i, hops],)
            values += [
                oracle(A, x[nodes], adjacency[i], attributes[i], p, *extra)
                for p in range(num_steps + 1)
            ]
    shape = (x.size(0), adjacency.size(0), num_steps + 1)
    flat = torch.stack(values) if values else x.new_zeros(0)
    return flat.reshape(shape).permute(2, 0, 1)


def dense_smoothing(
    h: Tensor,
    edge_index: Tensor,
    restart: float,
    num_steps: int = 10,
    num_hops: int = 1,
    max_nodes: int | None = None,
) -> Tensor:
    r"""Return smoothed logits (N, C) by powers of a dense matrix.

    .. math::
        Z = (1 - r)^K S^K H + r \sum_{k=0}^{K-1} (1 - r)^k S^k H, \qquad
        S_{va} = |G_v|^{-1/2} |G_a|^{-1/2} \text{ for } a \in G_v
    """
    count = len(h)
    egos = [ego_graph(edge_index, count, v, num_hops, max_nodes)[0] for v in range(count)]
    S = h.new_zeros(count, count)
    for v, nodes in enumerate(egos):
        for a in nodes:
            S[v, a] = (len(nodes) * len(egos[a])) ** -0.5
    powers = [torch.linalg.matrix_power((1 - restart) * S, k) @ h for k in range(num_steps + 1)]
    smoothed: Tensor = powers[-1] + restart * torch.stack(powers[:-1]).sum(0)
    return smoothed


def assert_permutation_invariant(
    module: nn.Module, x: Tensor, edge_index: Tensor, seed: int = 0, tolerance: float = 1e-9
) -> None:
    """Check that renumbering the nodes renumbers ``module(x, edge_index)`` and nothing else.

    A module that returns one row for the whole graph must return the same row.
    """
    num_nodes = x.size(0)
    old = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))
    new = torch.empty_like(old)
    new[old] = torch.arange(num_nodes)
    before, after = module(x, edge_index), module(x[old], new[edge_index])
    expected = before[old] if before.size(0) == num_nodes else before
    error = (after - expected).abs().max().item() if after.numel() else 0.0
    if not error <= tolerance:
        raise AssertionError(
            f"{type(module).__name__} depends on the order of the nodes: error {error:.2e} > "
            f"{tolerance:.0e}"
        )


def _symmetric(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace the upper half of the filters' adjacency by the whole of it.

    Kernels are functions of symmetric matrices, so only derivatives along those are defined.
    """
    upper = tensors["upper"].triu(1)
    rest = {k: t for k, t in tensors.items() if k != "upper"}
    return {"adjacency": upper + upper.transpose(1, 2), **rest}


class KernelTests:
    """Tests that every kernel must pass: subclass it, name the kernel and its naive form.

    The naive form takes the dense tensors of one ego-graph and one filter, as
    :func:`kronecker_kernel` does; a kernel with ``hop_weight`` gets the weights (n, m) as well.
    """

    kernel: ClassVar[str]
    oracle: ClassVar[PairOracle]
    filter_size: ClassVar[int] = 3
    num_steps: ClassVar[int] = 4
    engine: ClassVar[str] = "torch"

    # (number of nodes, edge probability, hops, max_nodes): empty, single, isolated, sparse, dense.
    cases: ClassVar[list[tuple[int, float, int, int | None]]] = [
        (0, 0.0, 1, None),
        (1, 0.0, 1, None),
        (4, 0.0, 1, None),
        (6, 0.3, 1, None),
        (6, 0.3, 2, 3),
        (5, 1.0, 1, None),
        (7, 0.4, 3, None),
    ]

    def inputs(self, case: int) -> tuple[dict[str, Tensor], Tensor, EgoGraphs]:
        """Return differentiable tensors, the edge index and the ego-graphs of a case."""
        num_nodes, probability, num_hops, max_nodes = self.cases[case]
        x, edge_index = random_graph(num_nodes, probability, seed=case)
        adjacency, attributes = random_filters(2, self.filter_size, seed=case)
        tensors = {"x": x, "upper": adjacency.triu(1), "attributes": attributes}
        for name, shape in get_kernel(self.kernel).parameters.items():
            generator = torch.Generator().manual_seed(case)
            size = (2, *shape(self.filter_size, num_hops))
            tensors[name] = torch.randn(size, generator=generator, dtype=torch.float64)
        ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
        return {k: t.requires_grad_() for k, t in tensors.items()}, edge_index, ego

    def evaluate(self, tensors: Mapping[str, Tensor], ego: EgoGraphs) -> Tensor:
        """Return the kernel under test: (P + 1, N, D)."""
        symmetric = _symmetric(tensors)
        return evaluate(
            self.kernel, ego=ego, num_steps=self.num_steps, engine=self.engine, **symmetric
        )

    def test_values_and_gradients_equal_the_oracle(self) -> None:
        """Compare with brute force, value by value and gradient by gradient."""
        for case, (_, _, num_hops, max_nodes) in enumerate(self.cases):
            tensors, edge_index, ego = self.inputs(case)
            K = self.evaluate(tensors, ego)
            num_steps = K.size(0) - 1
            expected = brute_force(
                type(self).oracle,
                edge_index=edge_index,
                num_steps=num_steps,
                num_hops=num_hops,
                max_nodes=max_nodes,
                **_symmetric(tensors),
            )
            torch.testing.assert_close(K, expected, rtol=1e-9, atol=1e-9)
            generator = torch.Generator().manual_seed(case)
            direction = torch.randn(K.shape, generator=generator, dtype=K.dtype)
            if not K.numel():
                continue
            options: dict[str, Any] = {"allow_unused": True, "materialize_grads": True}
            got = torch.autograd.grad((K * direction).sum(), list(tensors.values()), **options)
            want = torch.autograd.grad(
                (expected * direction).sum(), list(tensors.values()), **options
            )
            for name, g, w in zip(tensors, got, want, strict=True):
                error = (g - w).abs().max().item() / max(1.0, w.abs().max().item())
                assert error <= 1e-9, f"the gradient of {name} is off by {error:.1e}"

    def test_gradcheck(self) -> None:
        """Compare the derivative with finite differences."""
        tensors, _, ego = self.inputs(3)
        names = list(tensors)

        def function(*values: Tensor) -> Tensor:
            return self.evaluate(dict(zip(names, values, strict=True)), ego)

        assert torch.autograd.gradcheck(function, tuple(tensors.values()))

    def test_union_of_graphs_gives_what_each_gives_alone(self) -> None:
        """Evaluate several graphs at once and one by one."""
        parts = [self.inputs(case) for case in (3, 0, 5, 2)]
        shared = {k: t for k, t in parts[0][0].items() if k != "x"}
        together = self.evaluate(
            {"x": torch.cat([t["x"] for t, _, _ in parts]), **shared},
            EgoGraphs.cat([ego for _, _, ego in parts]),
        )
        alone = [self.evaluate({"x": t["x"], **shared}, ego) for t, _, ego in parts]
        torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=1e-12, atol=1e-12)

    def test_every_tensor_matters(self) -> None:
        """Every argument has a gradient that is not zero (one node has no adjacency)."""
        tensors, _, ego = self.inputs(3)
        used = [k for k in tensors if k != "upper" or self.filter_size > 1]
        total = self.evaluate(tensors, ego).sum()
        gradients = torch.autograd.grad(total, [tensors[name] for name in used])
        for name, gradient in zip(used, gradients, strict=True):
            assert gradient.abs().sum() > 0, f"the gradient of {name} is zero"
