import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn import EgoGraphs
from kergnn.engine import NORMALIZATIONS, combine, threads
from kergnn.testing import brute_force, kronecker_kernel, random_filters, random_graph

KERNELS = ["rw", "rw-step", "drw"]


def make_inputs(
    kernel="rw", num_nodes=7, probability=0.4, num_filters=3, filter_size=3, num_hops=1,
    max_nodes=None, num_steps=2, seed=0, dtype=torch.float64, num_features=3,
):  # fmt: skip
    x, edge_index = random_graph(num_nodes, probability, seed, num_features)
    adjacency, attributes = random_filters(num_filters, filter_size, num_features, seed)
    generator = torch.Generator().manual_seed(seed)
    tensors = {"x": x, "adjacency": adjacency, "attributes": attributes}
    tensors["step_weight"] = torch.randn(num_steps + 1, generator=generator)
    if kernel == "drw":
        tensors["hop_weight"] = torch.randn(
            num_filters, num_hops + 1, filter_size, generator=generator
        )
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
    return ego, {k: t.to(dtype).requires_grad_() for k, t in tensors.items()}


def values_and_gradients(ego, tensors, **options):
    k = combine(ego=ego, **tensors, **options)
    direction = torch.randn(k.shape, generator=torch.Generator().manual_seed(1), dtype=k.dtype)
    wanted = [t for t in tensors.values() if t.requires_grad]
    rest = {"allow_unused": True, "materialize_grads": True}
    return [k, *torch.autograd.grad((k * direction).sum(), wanted, **rest)]


def assert_engines_agree(ego, tensors, tolerance=1e-9, **options):
    fused = values_and_gradients(ego, tensors, engine="numba", **options)
    plain = values_and_gradients(ego, tensors, engine="torch", **options)
    for got, expected in zip(fused, plain, strict=True):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        scale = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
        torch.testing.assert_close(got, expected, rtol=0, atol=tolerance * scale)


@settings(max_examples=60, deadline=None)
@given(
    kernel=st.sampled_from([*KERNELS, "rw", "rw"]),
    normalize=st.sampled_from(NORMALIZATIONS),
    num_steps=st.integers(0, 3),
    num_nodes=st.integers(0, 9),
    probability=st.floats(0, 1),
    num_filters=st.sampled_from([1, 2, 16, 17, 32]),
    filter_size=st.integers(1, 6),
    num_hops=st.integers(0, 2),
    max_nodes=st.none() | st.integers(1, 5),
    num_features=st.sampled_from([1, 3, 17]),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_fused_equals_torch(kernel, normalize, dtype, **graph):
    ego, tensors = make_inputs(kernel, dtype=dtype, **graph)
    tolerance = 1e-9 if dtype.itemsize == 8 else 1e-4
    assert_engines_agree(ego, tensors, tolerance, kernel=kernel, normalize=normalize)


def written_out(K, size, filter_size, step_weight, normalize):
    """The definition in the docstring of KerGNNConv, number by number."""
    total = 0
    for p, weight in enumerate(step_weight):
        q = K[p] / (size.unsqueeze(1) * filter_size)
        r = q.sign() * ((q.abs() + 0.01).sqrt() - 0.1)
        log = r.sign() * (1 + r.abs()).log() / math.log(2)
        total = total + weight * {None: K[p], "size": q, "root": r, "log": log}[normalize]
    return total


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_values_and_gradients_equal_the_oracle(normalize, num_steps):
    x, edge_index = random_graph(6, 0.5)
    adjacency, attributes = random_filters(2, 3)
    ego = EgoGraphs.from_edge_index(edge_index, 6)
    upper = adjacency.triu(1)
    leaves = [x, upper, attributes, torch.rand(num_steps + 1, dtype=torch.float64) + 0.5]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    B = leaves[1].triu(1) + leaves[1].triu(1).mT
    k = combine("rw", x, ego, B, attributes, leaves[3], normalize, engine="numba")
    K = brute_force(kronecker_kernel, x, edge_index, B, attributes, num_steps)
    expected = written_out(K, ego.size, 3, leaves[3], normalize)
    torch.testing.assert_close(k, expected, rtol=1e-9, atol=1e-9)
    options = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
    got = torch.autograd.grad(k.square().sum(), leaves, **options)
    want = torch.autograd.grad(expected.square().sum(), leaves, **options)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=1e-9, atol=1e-9 * max(1.0, w.abs().max().item()))


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_gradcheck(normalize):
    ego, tensors = make_inputs(num_nodes=5, num_filters=2)
    upper = tensors["adjacency"].detach().triu(1).requires_grad_()

    def function(x, upper, attributes, step_weight):
        B = upper.triu(1) + upper.triu(1).mT
        return combine("rw", x, ego, B, attributes, step_weight, normalize, engine="numba")

    leaves = (tensors["x"], upper, tensors["attributes"], tensors["step_weight"])
    assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("hot", [1, 2])
def test_features_that_are_mostly_zero(hot):
    """Zeros are left out of products; their gradients are not."""
    ego, tensors = make_inputs(num_nodes=40, probability=0.1, num_features=20)
    places = torch.randint(20, (40, hot), generator=torch.Generator().manual_seed(0))
    x = torch.zeros(40, 20, dtype=torch.float64).scatter(1, places, 1.5)
    tensors["x"] = x.requires_grad_()
    assert_engines_agree(ego, tensors, kernel="rw", normalize="log")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_cliques_with_a_few_missing_edges(kernel, missing):
    """Members with many neighbours list those that they are not adjacent to."""
    edges = torch.combinations(torch.arange(9))
    keep = torch.randperm(len(edges), generator=torch.Generator().manual_seed(missing))
    ego = EgoGraphs.from_edge_index(edges[keep[missing:]].T, 9)
    _, tensors = make_inputs(kernel, num_nodes=9, filter_size=6)
    assert_engines_agree(ego, tensors, kernel=kernel, normalize="log")


def test_inputs_and_gradients_need_not_be_contiguous():
    ego, tensors = make_inputs()
    strided = {k: t.detach().mT.contiguous().mT for k, t in tensors.items() if t.dim() > 1}
    strided["step_weight"] = torch.randn(6, dtype=torch.float64)[::2]
    strided = {k: t.requires_grad_() for k, t in strided.items()}
    assert not strided["x"].is_contiguous()
    results = []
    for engine in ("numba", "torch"):
        k = combine("rw", ego=ego, normalize="log", engine=engine, **strided)
        loss = k[:, ::2].sum() + k.T[1].prod()
        results.append(torch.autograd.grad(loss, list(strided.values())))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("frozen", ["x", "adjacency", "attributes", "step_weight"])
def test_some_inputs_need_no_gradient(frozen):
    ego, tensors = make_inputs()
    tensors[frozen].requires_grad_(False)
    assert_engines_agree(ego, tensors, kernel="rw", normalize="log")


def test_what_is_not_finite_stays_so():
    ego, tensors = make_inputs(probability=1.0, dtype=torch.float32)
    for value in (1e30, float("inf"), float("nan")):
        tensors["x"].data[0] = value
        for normalize in NORMALIZATIONS:
            k = combine("rw", ego=ego, normalize=normalize, engine="numba", **tensors)
            assert not k.isfinite().any()


@pytest.fixture
def num_threads(monkeypatch):
    """Set the number of threads of torch, and let little work count as enough for all of them."""
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "_WORK_PER_THREAD", 1)
    yield torch.set_num_threads
    torch.set_num_threads(before)


def big_inputs():
    """Ten graphs of 150 nodes, 40 filters: ten tiles and three blocks of filters."""
    parts = [random_graph(150, 0.05, seed=i, num_features=5) for i in range(10)]
    ego = EgoGraphs.cat(EgoGraphs.from_edge_index(e, 150, 1, 8) for _, e in parts)
    _, tensors = make_inputs(num_filters=40, filter_size=4, num_features=5)
    tensors["x"] = torch.cat([x for x, _ in parts])
    return ego, {k: t.detach().float().requires_grad_() for k, t in tensors.items()}


def same_bits(a, b):
    return all(torch.equal(s, t) for s, t in zip(a, b, strict=True))


def test_two_threads_give_one_bit_pattern_200_times(num_threads):
    num_threads(2)
    ego, tensors = big_inputs()
    k = combine("rw", ego=ego, normalize="log", engine="numba", **tensors)
    leaves = list(tensors.values())
    first = torch.autograd.grad(k.square().mean(), leaves, retain_graph=True)
    for _ in range(200):
        again = torch.autograd.grad(k.square().mean(), leaves, retain_graph=True)
        assert same_bits(first, again)


def test_the_number_of_threads_changes_no_bit(num_threads, monkeypatch):
    """Matrix products included."""
    ego, tensors = big_inputs()
    num_threads(1)
    options = {"kernel": "rw", "normalize": "log", "engine": "numba"}
    alone = values_and_gradients(ego, tensors, **options)
    for count in (2, 3, 7):
        monkeypatch.setattr(threads.torch, "get_num_threads", lambda count=count: count)
        assert same_bits(alone, values_and_gradients(ego, tensors, **options))


@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_several_blocks_of_filters_add_up_in_the_gradient_of_the_features(num_steps):
    ego, tensors = make_inputs(
        num_nodes=40, probability=0.2, num_filters=40, filter_size=5, num_steps=num_steps
    )
    assert_engines_agree(ego, tensors, kernel="rw", normalize="log")


def test_features_that_change_before_the_backward_pass_are_noticed():
    ego, tensors = make_inputs()
    x = tensors["x"] * 1
    out = combine(ego=ego, **{**tensors, "x": x}, kernel="rw", normalize="log", engine="numba")
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
