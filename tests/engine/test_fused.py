import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn import EgoGraphs, KerGNN, KerGNNConv
from kergnn.engine import evaluate
from kergnn.testing import (
    KernelTests,
    deep_kronecker_kernel,
    enumerated_walk_kernel,
    kronecker_kernel,
    random_filters,
    random_graph,
)

KERNELS = ["rw", "rw-step", "drw"]


class TestShortRandomWalk(KernelTests):
    kernel = "rw"
    oracle = kronecker_kernel
    num_steps = 2
    engine = "numba"


class TestLongRandomWalk(KernelTests):
    kernel = "rw"
    oracle = kronecker_kernel
    num_steps = 5
    engine = "numba"


class TestStepRandomWalk(KernelTests):
    kernel = "rw-step"
    oracle = enumerated_walk_kernel
    num_steps = 3
    engine = "numba"


class TestDeepRandomWalk(KernelTests):
    kernel = "drw"
    oracle = deep_kronecker_kernel
    engine = "numba"


def make_inputs(
    kernel, num_nodes=7, probability=0.4, num_filters=3, filter_size=3, num_hops=1,
    max_nodes=None, seed=0, dtype=torch.float64,
):  # fmt: skip
    """Return ego-graphs and differentiable tensors; the filters' adjacency is a plain leaf."""
    x, edge_index = random_graph(num_nodes, probability, seed)
    adjacency, attributes = random_filters(num_filters, filter_size, seed=seed)
    tensors = {"x": x, "adjacency": adjacency, "attributes": attributes}
    if kernel == "drw":
        generator = torch.Generator().manual_seed(seed)
        size = (num_filters, num_hops + 1, filter_size)
        tensors["hop_weight"] = torch.randn(size, generator=generator, dtype=torch.float64)
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
    return ego, {k: t.to(dtype).requires_grad_() for k, t in tensors.items()}


def values_and_gradients(kernel, ego, tensors, num_steps, engine):
    K = evaluate(kernel, ego=ego, num_steps=num_steps, engine=engine, **tensors)
    direction = torch.randn(K.shape, generator=torch.Generator().manual_seed(1), dtype=K.dtype)
    wanted = [t for t in tensors.values() if t.requires_grad]
    options = {"allow_unused": True, "materialize_grads": True}
    return [K, *torch.autograd.grad((K * direction).sum(), wanted, **options)]


def assert_engines_agree(kernel, ego, tensors, num_steps, tolerance):
    fused = values_and_gradients(kernel, ego, tensors, num_steps, "numba")
    plain = values_and_gradients(kernel, ego, tensors, num_steps, "torch")
    for got, expected in zip(fused, plain, strict=True):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        scale = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
        torch.testing.assert_close(got, expected, rtol=0, atol=tolerance * scale)


@settings(max_examples=60, deadline=None)
@given(
    kernel=st.sampled_from(KERNELS),
    num_steps=st.integers(0, 4),
    num_nodes=st.integers(0, 9),
    probability=st.floats(0, 1),
    num_filters=st.sampled_from([1, 2, 16, 17, 32]),
    filter_size=st.integers(1, 5),
    num_hops=st.integers(0, 3),
    max_nodes=st.none() | st.integers(1, 5),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_fused_equals_torch(kernel, num_steps, dtype, **graph):
    ego, tensors = make_inputs(kernel, dtype=dtype, **graph)
    assert_engines_agree(kernel, ego, tensors, num_steps, 1e-9 if dtype.itemsize == 8 else 1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_tiles_equal_torch(kernel):
    """Graphs of one to 300 nodes: several to a tile, one to a tile, and one larger than a tile."""
    sizes = [1, 300, 30, 40, 200, 2, 3, 280, 5]
    parts = [random_graph(n, 4 / n, seed=n) for n in sizes]
    egos = [EgoGraphs.from_edge_index(e, len(x), 2, 6) for x, e in parts]
    _, tensors = make_inputs(kernel, num_filters=20, filter_size=4, num_hops=2)
    tensors["x"] = torch.cat([x for x, _ in parts]).requires_grad_()
    assert_engines_agree(kernel, EgoGraphs.cat(egos), tensors, 3, 1e-9)


def test_truncated_ego_graphs_that_reach_back_stay_in_one_tile():
    """Node 600 has the hub in its ego-graph, the hub has it not: no tile may end between."""
    hub = torch.stack([torch.zeros(700, dtype=torch.long), torch.arange(1, 701)])
    _, tensors = make_inputs("rw")
    ego = EgoGraphs.from_edge_index(hub, 701, max_nodes=3)
    tensors["x"] = torch.randn(701, 3, dtype=torch.float64).requires_grad_()
    assert_engines_agree("rw", ego, tensors, 2, 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("frozen", ["x", "adjacency", "attributes"])
def test_some_inputs_need_no_gradient(kernel, frozen):
    ego, tensors = make_inputs(kernel)
    tensors[frozen].requires_grad_(False)
    assert_engines_agree(kernel, ego, tensors, 2, 1e-9)


def test_nothing_is_recorded_without_gradients():
    ego, tensors = make_inputs("rw")
    with torch.no_grad():
        assert not evaluate("rw", ego=ego, num_steps=2, engine="numba", **tensors).requires_grad


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_and_gradients_need_not_be_contiguous(kernel):
    ego, tensors = make_inputs(kernel)
    strided = {k: t.detach().mT.contiguous().mT.requires_grad_() for k, t in tensors.items()}
    assert not strided["x"].is_contiguous()
    assert_engines_agree(kernel, ego, strided, 2, 1e-9)

    K = evaluate(kernel, ego=ego, num_steps=2, engine="numba", **tensors)
    expected = evaluate(kernel, ego=ego, num_steps=2, engine="torch", **tensors)
    (got,) = torch.autograd.grad(K[1, :, ::2].sum() + K.mT[2].prod(), tensors["x"])
    (want,) = torch.autograd.grad(expected[1, :, ::2].sum() + expected.mT[2].prod(), tensors["x"])
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9 * want.abs().max().item())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_layer_used_twice_in_one_graph(kernel):
    x, edge_index = random_graph(8, 0.4, num_features=4)
    torch.manual_seed(0)
    fused = KerGNNConv(4, 4, 3, kernel=kernel, engine="numba").double()
    plain = KerGNNConv(4, 4, 3, kernel=kernel, engine="torch").double()
    plain.load_state_dict(fused.state_dict())
    ego = EgoGraphs.from_edge_index(edge_index, 8)
    for conv in (fused, plain):
        (conv(conv(x, ego), ego) + conv(x, ego)).square().sum().backward()
    for got, expected in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad, rtol=1e-9, atol=1e-9)


def test_the_model_passes_the_engine_on():
    net = KerGNN(3, 4, 2, num_layers=2, engine="torch")
    assert {conv.groups[0].engine for conv in net.convs} == {"torch"}
    with pytest.raises(ValueError, match="engine is 'fast': it must be one of 'auto', 'torch'"):
        KerGNN(3, 4, 2, engine="fast")


def test_nan_stays_nan():
    ego, tensors = make_inputs("rw", probability=1.0)
    tensors["x"].data[0] = float("nan")
    assert evaluate("rw", ego=ego, num_steps=2, engine="numba", **tensors).isnan().all()


def test_shapes_and_types_are_checked_before_memory_is_touched():
    ego, tensors = make_inputs("drw")
    arguments = {"kernel": "drw", "ego": ego, "num_steps": 2, "engine": "numba"}
    with pytest.raises(ValueError, match=r"x has shape \(6, 3\): it must be \(N, d\) = \(7, 3\)"):
        evaluate(**arguments, **{**tensors, "x": tensors["x"][:6]})
    with pytest.raises(ValueError, match=r"adjacency has shape \(3, 2, 2\)"):
        evaluate(**arguments, **{**tensors, "adjacency": tensors["adjacency"][:, :2, :2]})
    with pytest.raises(ValueError, match="they must have one type"):
        evaluate(**arguments, **{**tensors, "adjacency": tensors["adjacency"].float()})
    with pytest.raises(ValueError, match="ego reaches 1 hops"):
        evaluate(**arguments, **{**tensors, "hop_weight": tensors["hop_weight"][:, :1]})
