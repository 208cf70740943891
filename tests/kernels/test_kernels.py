import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn import EgoGraphs
from kergnn.kernels import deep_random_walk, get_kernel, random_walk, step_random_walk
from kergnn.testing import (
    KernelTests,
    brute_force,
    deep_kronecker_kernel,
    enumerated_walk_kernel,
    kronecker_kernel,
    random_filters,
    random_graph,
)


def one_node_similarity(A, X, B, W, p):
    """Unnormalised GCN; the normalisation is checked against PyG in tests/nn/test_conv.py."""
    return (X @ W.T).sum()


class TestRandomWalk(KernelTests):
    kernel = "rw"
    oracle = kronecker_kernel


class TestStepRandomWalk(KernelTests):
    kernel = "rw-step"
    oracle = enumerated_walk_kernel
    num_steps = 3


class TestDeepRandomWalk(KernelTests):
    kernel = "drw"
    oracle = deep_kronecker_kernel


class TestGCN(KernelTests):
    kernel = "gcn"
    filter_size = 1
    oracle = one_node_similarity

    def evaluate(self, tensors, ego):
        # |G_a| enters through the features: x_a = sqrt(|G_a|) y_a makes the oracle's sum plain.
        scale = ego.size.double().sqrt().unsqueeze(-1)
        return super().evaluate({**tensors, "x": tensors["x"] * scale}, ego) * scale


class TestFusedGCN(TestGCN):
    engine = "numba"


graphs = st.builds(
    random_graph,
    num_nodes=st.integers(0, 6),
    probability=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
filters = st.builds(
    random_filters,
    num_filters=st.integers(1, 3),
    filter_size=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)


def assert_values_and_gradients_equal(kernel, oracle, graph, filters, num_steps, hops, max_nodes):
    x, edge_index = graph
    adjacency, attributes = filters
    variables = [t.clone().requires_grad_() for t in (x, adjacency.triu(1), attributes)]
    x, free, attributes = variables
    upper = free.triu(1)
    adjacency = upper + upper.transpose(1, 2)
    ego = EgoGraphs.from_edge_index(edge_index, x.size(0), hops, max_nodes)
    K = kernel(x, ego, adjacency, attributes, num_steps)
    expected = brute_force(oracle, x, edge_index, adjacency, attributes, num_steps, hops, max_nodes)
    torch.testing.assert_close(K, expected, rtol=1e-9, atol=1e-9)
    if not K.numel():
        return
    weight = torch.linspace(0.5, 1.5, K.numel(), dtype=K.dtype).reshape(K.shape)
    options = {"allow_unused": True, "materialize_grads": True}
    got = torch.autograd.grad((K * weight).sum(), variables, **options)
    want = torch.autograd.grad((expected * weight).sum(), variables, **options)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=1e-9, atol=1e-9 * max(1, float(w.abs().sum())))


@settings(max_examples=40, deadline=None)
@given(graphs, filters, st.integers(0, 4), st.integers(0, 3), st.none() | st.integers(1, 5))
def test_rw_equals_the_kronecker_product(graph, filters, num_steps, num_hops, max_nodes):
    assert_values_and_gradients_equal(
        random_walk, kronecker_kernel, graph, filters, num_steps, num_hops, max_nodes
    )


@settings(max_examples=25, deadline=None)
@given(
    st.builds(
        random_graph,
        num_nodes=st.integers(0, 5),
        probability=st.floats(0, 1),
        seed=st.integers(0, 10**6),
    ),
    st.builds(
        random_filters,
        num_filters=st.integers(1, 2),
        filter_size=st.integers(1, 3),
        seed=st.integers(0, 10**6),
    ),
    st.integers(0, 4),
    st.integers(1, 2),
)
def test_rw_step_equals_the_enumeration_of_walks(graph, filters, num_steps, num_hops):
    assert_values_and_gradients_equal(
        step_random_walk, enumerated_walk_kernel, graph, filters, num_steps, num_hops, None
    )


def test_a_value_computed_by_hand():
    """Path 0-1-2 with features 1, 2, 3 against one edge of weight 1/2 with attributes 1, 1.

    The ego-graph of node 0 is the edge 0-1. S has rows (1, 1) and (2, 2).
    rw: K_0 = 1 + 1 + 4 + 4 = 10; K_1 = 2 * (1 * 2 / 2) * 2 = 4; K_2 = 10 / 4.
    rw-step: K_0 = 6; K_1 = 4; K_2 = sum of S * (A U_1 B) with U_1 = 1 everywhere = 6 / 2.
    """
    x = torch.tensor([[1.0], [2.0], [3.0]])
    ego = EgoGraphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
    B, W = torch.tensor([[[0, 0.5], [0.5, 0]]]), torch.ones(1, 2, 1)
    assert random_walk(x, ego, B, W, 2)[:, 0, 0].tolist() == [10, 4, 2.5]
    assert step_random_walk(x, ego, B, W, 2)[:, 0, 0].tolist() == [6, 4, 3]


def test_the_two_walk_kernels_agree_at_one_step_only():
    x, edge_index = random_graph(6, 0.5, seed=3)
    ego = EgoGraphs.from_edge_index(edge_index, 6)
    filters = random_filters(2, 3)
    ends, steps = random_walk(x, ego, *filters, 2), step_random_walk(x, ego, *filters, 2)
    torch.testing.assert_close(ends[1], steps[1], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(ends[0], steps[0])
    assert not torch.allclose(ends[2], steps[2])


def test_drw_with_all_weights_one_is_rw():
    x, edge_index = random_graph(7, 0.4, seed=1)
    ego = EgoGraphs.from_edge_index(edge_index, 7, num_hops=2)
    filters = random_filters(2, 3)
    ones = torch.ones(2, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(
        deep_random_walk(x, ego, *filters, 4, hop_weight=ones), random_walk(x, ego, *filters, 4)
    )


def test_drw_refuses_ego_graphs_beyond_its_weights():
    x, edge_index = random_graph(4, 1.0)
    ego = EgoGraphs.from_edge_index(edge_index, 4)
    with pytest.raises(ValueError, match="ego reaches 1 hops"):
        deep_random_walk(x, ego, *random_filters(1, 2), 1, hop_weight=torch.ones(1, 1, 2).double())


@pytest.mark.parametrize("kernel", ["rw", "rw-step"])
def test_edges_matter_from_the_first_step_on(kernel):
    """Adding an edge leaves K_0 of its ends' old members alone and changes K_1."""
    x = torch.ones(3, 1)
    filters = torch.tensor([[[0.0, 1], [1, 0]]]), torch.ones(1, 2, 1)
    path = EgoGraphs.from_edge_index(torch.tensor([[0, 0], [1, 2]]), 3)
    triangle = EgoGraphs.from_edge_index(torch.tensor([[0, 0, 1], [1, 2, 2]]), 3)
    before, after = (get_kernel(kernel).function(x, ego, *filters, 1)[:, 0, 0]
                     for ego in (path, triangle))  # fmt: skip
    assert before[0] == after[0]
    assert after[1] / before[1] == pytest.approx(math.prod([6, 1 / 4]))


def test_unknown_kernel_is_named_with_what_there_is():
    with pytest.raises(ValueError, match=r"kernel is 'rwk': it must be one of .*'drw'"):
        get_kernel("rwk")
