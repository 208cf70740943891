import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn import EgoGraphs
from kergnn.engine import evaluate, normalized_sum
from kergnn.kernels import ragged
from kergnn.testing import random_filters, random_graph


def sum_and_gradient(summed, ego, h):
    direction = torch.randn(h.shape, generator=torch.Generator().manual_seed(1)).to(h)
    total = summed(h, ego)
    (gradient,) = torch.autograd.grad((total * direction).sum(), h)
    return total, gradient


@settings(max_examples=40, deadline=None)
@given(
    num_nodes=st.integers(0, 40),
    probability=st.floats(0, 1),
    num_hops=st.integers(0, 2),
    max_nodes=st.none() | st.integers(1, 5),
    channels=st.sampled_from([0, 1, 3, 16, 33]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_compiled_sums_have_the_bits_of_torch(num_nodes, probability, num_hops, max_nodes, **like):
    """Truncated ego-graphs are no symmetric relation: the transpose must be one."""
    _, edge_index = random_graph(num_nodes, probability)
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(num_nodes, like["channels"], generator=generator, dtype=like["dtype"])
    h.requires_grad_()
    plain = sum_and_gradient(ragged.normalized_sum, ego, h)
    fused = sum_and_gradient(normalized_sum, ego, h)
    assert all(map(torch.equal, fused, plain))


def test_many_tiles_and_rows_that_are_not_contiguous():
    sizes = [1, 300, 30, 40, 200, 2]
    parts = [random_graph(n, 4 / n, seed=n)[1] for n in sizes]
    egos = [EgoGraphs.from_edge_index(e, n) for e, n in zip(parts, sizes, strict=True)]
    ego = EgoGraphs.cat(egos)
    h = torch.randn(5, ego.num_nodes, generator=torch.Generator().manual_seed(0)).T.requires_grad_()
    plain = sum_and_gradient(ragged.normalized_sum, ego, h)
    assert all(map(torch.equal, sum_and_gradient(normalized_sum, ego, h), plain))


@pytest.mark.parametrize("num_threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(num_threads):
    """Work for several threads: 200 graphs, each a tile; both passes."""
    ego = EgoGraphs.cat([EgoGraphs.from_edge_index(random_graph(130, 0.05, s)[1], 130)
                         for s in range(20)] * 10)  # fmt: skip
    h = torch.randn(ego.num_nodes, 40, generator=torch.Generator().manual_seed(0))
    h.requires_grad_()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = sum_and_gradient(normalized_sum, ego, h)
        torch.set_num_threads(num_threads)
        together = sum_and_gradient(normalized_sum, ego, h)
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, together, alone))


def test_the_sum_can_be_differentiated_twice():
    _, edge_index = random_graph(6, 0.5)
    ego = EgoGraphs.from_edge_index(edge_index, 6, max_nodes=3)
    h = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradgradcheck(lambda h: normalized_sum(h, ego) ** 3, h)


@pytest.mark.parametrize("engine", ["auto", "numba"])
def test_gcn_is_fused(engine):
    x, edge_index = random_graph(9, 0.4)
    ego = EgoGraphs.from_edge_index(edge_index, 9)
    filters = random_filters(4, 1)
    values = evaluate("gcn", x, ego, *filters, 2, engine=engine)  # warnings are errors here
    assert torch.equal(values, evaluate("gcn", x, ego, *filters, 2, engine="torch"))
    assert values.shape == (1, 9, 4)


@pytest.mark.parametrize("shape", [(3, 1), (1, 1), (2, 1, 1), (2,)])
def test_values_of_other_nodes_are_refused(shape):
    ego = EgoGraphs.from_edge_index(torch.tensor([[0], [1]]), 2)
    with pytest.raises(ValueError, match=r"h has shape .*: it must be \(N, D\) with N = 2"):
        normalized_sum(torch.ones(shape), ego)


def test_gcn_with_filters_of_two_nodes_is_refused():
    x, edge_index = random_graph(4)
    with pytest.raises(ValueError, match="h has shape"):
        evaluate("gcn", x, EgoGraphs.from_edge_index(edge_index, 4), *random_filters(4, 2), 2)
