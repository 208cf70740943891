import math

import pytest
import torch
from torch_geometric.nn import APPNP

from kergnn import EgoGraphs, KerGNN
from kergnn.nn.smoothing import NUM_SMOOTHING_STEPS, smoothed
from kergnn.testing import assert_permutation_invariant, dense_smoothing, random_graph


@pytest.mark.parametrize("num_hops", [1, 2])
@pytest.mark.parametrize("max_nodes", [None, 3])
def test_smoothing_equals_powers_of_a_dense_matrix(num_hops, max_nodes):
    h, edge_index = random_graph(12, 0.2, seed=4)
    ego = EgoGraphs.from_edge_index(edge_index, 12, num_hops, max_nodes)
    expected = dense_smoothing(h, edge_index, 0.3, num_hops=num_hops, max_nodes=max_nodes)
    torch.testing.assert_close(smoothed(h, ego, 0.3), expected, rtol=1e-9, atol=1e-9)
    assert (expected - h).abs().max() > 0.1


def test_smoothing_is_that_of_appnp():
    h, edge_index = random_graph(12, 0.2, seed=5)
    ego = EgoGraphs.from_edge_index(edge_index, 12)
    expected = APPNP(NUM_SMOOTHING_STEPS, 0.2)(h, edge_index)
    torch.testing.assert_close(smoothed(h, ego, 0.2), expected)


def test_a_model_smooths_what_its_head_says():
    x, edge_index = random_graph(9, 0.3, seed=2)
    torch.manual_seed(0)
    plain = KerGNN(3, 4, 5, task="node").double().eval()
    torch.manual_seed(0)
    net = KerGNN(3, 4, 5, task="node", restart=0.2).double().eval()
    expected = dense_smoothing(plain(x, edge_index), edge_index, 0.2)
    torch.testing.assert_close(net(x, edge_index), expected)
    assert_permutation_invariant(net, x, edge_index)


def test_the_engine_of_the_model_smooths_too(monkeypatch):
    x, edge_index = random_graph(9, 0.3, seed=2)
    torch.manual_seed(0)
    net = KerGNN(3, 4, 5, task="node", restart=0.2, engine="torch").double().eval()
    expected = net(x, edge_index)
    monkeypatch.setattr("kergnn.engine.fused.normalized_sum", lambda h, ego: h * math.nan)
    assert torch.equal(net(x, edge_index), expected)
    monkeypatch.setattr(net, "engine", "auto")
    assert net(x, edge_index).isnan().all()


@pytest.mark.parametrize("restart", [0.0, -0.1, 1.1, float("nan"), "0.2", True])
def test_a_restart_that_is_no_probability_is_refused(restart):
    with pytest.raises(ValueError, match="restart is"):
        KerGNN(3, 4, 2, task="node", restart=restart)


def test_only_nodes_are_smoothed():
    with pytest.raises(ValueError, match=r"restart is 0\.2: it must be None, or"):
        KerGNN(3, 4, 2, restart=0.2)
