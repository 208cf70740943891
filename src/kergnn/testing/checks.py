"""Assertions and tests that any kernel or module reuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kergnn.egographs import EgoGraphs
from kergnn.engine import evaluate
from kergnn.kernels import get_kernel
from kergnn.testing.inputs import random_filters, random_graph
from kergnn.testing.oracles import PairOracle, brute_force


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
