import subprocess
import sys
import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kergnn import EgoGraphs, _compile, engine
from kergnn.engine import evaluate
from kergnn.kernels import get_kernel, register_kernel, registry
from kergnn.testing import random_filters, random_graph


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch):
    monkeypatch.setattr(engine, "_warned", set())
    monkeypatch.delenv("KERGNN_ENGINE", raising=False)


@pytest.fixture
def used(monkeypatch):
    """Record which engine evaluated the kernel."""
    from kergnn.engine import fused

    calls = []
    evaluate_fused = fused.evaluate

    def record(*args, **kwargs):
        calls.append("numba")
        return evaluate_fused(*args, **kwargs)

    monkeypatch.setattr(fused, "evaluate", record)
    return calls


def inputs(dtype=torch.float64, filter_size=2):
    x, edge_index = random_graph(5, 0.5)
    filters = (t.to(dtype) for t in random_filters(2, filter_size))
    return x.to(dtype), EgoGraphs.from_edge_index(edge_index, 5), *filters, 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_auto_is_fused_on_the_cpu(used, dtype):
    evaluate("rw", *inputs(dtype))
    assert used == ["numba"]


def test_torch_is_torch(used):
    evaluate("rw", *inputs(), engine="torch")
    assert not used


@pytest.fixture
def own_kernel(monkeypatch):
    """A kernel of one's own, of which the fused engine knows nothing."""
    monkeypatch.setattr(registry, "_KERNELS", dict(registry._KERNELS))
    register_kernel("mine")(get_kernel("rw").function)
    return "mine"


def test_auto_is_silent_where_there_is_no_fused_form(used, own_kernel):
    evaluate(own_kernel, *inputs())
    evaluate("rw", *inputs(torch.bfloat16))
    assert not used


def test_asking_for_numba_in_vain_warns_once(used, own_kernel):
    with pytest.warns(UserWarning, match="engine 'torch' is used: kernel 'mine' has no fused form"):
        values = evaluate(own_kernel, *inputs(), engine="numba")
    assert torch.equal(values, get_kernel("rw").function(*inputs()))
    evaluate(own_kernel, *inputs(), engine="numba")  # warnings are errors here
    with pytest.warns(UserWarning, match="the tensors are torch.bfloat16"):
        evaluate("rw", *inputs(torch.bfloat16), engine="numba")
    assert not used


def test_mixed_precision_is_left_to_torch(used):
    with torch.autocast("cpu", torch.bfloat16):
        evaluate("rw", *inputs(torch.float32))
    assert not used


@pytest.mark.parametrize("name", ["auto", "numba"])
def test_without_numba_torch_is_used_with_one_warning(monkeypatch, name):
    monkeypatch.setattr(_compile, "numba", None)
    monkeypatch.setattr(_compile, "_warned", set())
    with pytest.warns(UserWarning, match="engine 'torch' is used, .* Numba cannot be imported"):
        values = evaluate("rw", *inputs(), engine=name)
    assert torch.equal(values, get_kernel("rw").function(*inputs()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate("rw", *inputs(), engine=name)


def test_the_environment_overrides_auto_only(monkeypatch, used):
    monkeypatch.setenv("KERGNN_ENGINE", "torch")
    evaluate("rw", *inputs())
    assert not used
    evaluate("rw", *inputs(), engine="numba")
    assert used == ["numba"]
    monkeypatch.setenv("KERGNN_ENGINE", "cuda")
    evaluate("rw", *inputs(), engine="torch")
    with pytest.raises(ValueError, match="KERGNN_ENGINE is 'cuda': it must be one of 'auto'"):
        evaluate("rw", *inputs())


def test_unknown_engine_is_named_with_what_there_is():
    with pytest.raises(ValueError, match="engine is 'fast': it must be one of 'auto', 'torch', "):
        evaluate("rw", *inputs(), engine="fast")


def test_importing_the_package_loads_no_compiled_code():
    code = "import sys, kergnn; sys.exit('kergnn.engine.fused' in sys.modules)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_kernel_may_be_evaluated_before_there_is_a_layer():
    """Modules of the engine must not take the names of its functions when they are loaded."""
    code = """
import torch
from kergnn.engine import combine, evaluate
from kergnn.egographs import EgoGraphs
ego = EgoGraphs.from_edge_index(torch.tensor([[0], [1]]), 2)
evaluate("rw", torch.ones(2, 3), ego, torch.ones(1, 1, 1), torch.ones(1, 1, 3), 2)
import kergnn.engine
assert kergnn.engine.combine is combine
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


class Watch(TorchDispatchMode):
    """Record operations that read a number on the host, and those that mix or change devices."""

    def __init__(self):
        super().__init__()
        self.read, self.moved, self.seen = [], [], 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen += 1
        out = function(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, out))
        if function in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default):
            self.read.append(function)
        devices = {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)}
        copied = function is torch.ops.aten._to_copy.default and "device" in (kwargs or {})
        if len(devices) > 1 or copied:
            self.moved.append(function)
        return out


def test_a_watch_sees_reads_and_moves():
    with Watch() as watch:
        torch.ones(2).to("meta")
        torch.ones(1).item()
    assert torch.ops.aten._to_copy.default in watch.moved
    assert watch.read == [torch.ops.aten._local_scalar_dense.default]


@pytest.mark.parametrize(("kernel", "reads"), [("rw", 0), ("rw-step", 0), ("drw", 1), ("gcn", 0)])
def test_the_torch_kernels_move_no_tensor_and_wait_for_none(kernel, reads):
    """Forward and backward; ``drw`` looks once at the largest hop, which ego-graphs remember."""
    x, ego, adjacency, attributes, num_steps = inputs(filter_size=1 if kernel == "gcn" else 2)
    tensors = [t.requires_grad_() for t in (x, adjacency, attributes)]
    extra = {}
    if kernel == "drw":
        extra = {"hop_weight": torch.ones(2, 2, 2, dtype=torch.float64, requires_grad=True)}
    for expected in (reads, 0):
        with Watch() as watch:
            K = evaluate(kernel, tensors[0], ego, *tensors[1:], num_steps, engine="torch", **extra)
            torch.autograd.grad(K.sum(), tensors, allow_unused=True)
        assert watch.seen > 5
        assert not watch.moved
        assert len(watch.read) == expected
