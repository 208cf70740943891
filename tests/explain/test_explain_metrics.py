import copy
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from kergnn import KerGNN
from kergnn.config import ConfigError
from kergnn.data import hexagons
from kergnn.explain import explain
from kergnn.explain.fidelity import fidelity_scores, top_edges
from kergnn.explain.metrics import (
    doubt,
    existence_rate,
    explanation_metrics,
    filter_similarity,
    measure_run,
    recovered,
    redundancy,
    stability,
    truth_auc,
)
from kergnn.testing import kronecker_kernel


def test_auc_is_the_mean_over_graphs_with_a_motif():
    scores = [torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1.0, 9.0]), torch.tensor([1.0, 2.0])]
    truths = [torch.tensor([True, False, True]), torch.tensor([True, False]), torch.zeros(2) > 0]
    found = truth_auc(scores, truths)
    assert found.count == 2
    assert found.mean == pytest.approx((0.5 + 0) / 2)
    assert found.pooled == pytest.approx(1 / 6)
    with pytest.raises(ValueError, match="no graph with a motif"):
        truth_auc(scores[2:], truths[2:])


def test_top_edges_keep_directions_together():
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    mask = torch.tensor([0.9, 0.0, 0.5, 0.6, 0.1, 0.1])
    assert top_edges(mask, edge_index, 0.34).tolist() == [0, 0, 1, 1, 0, 0]
    assert top_edges(mask, edge_index, 0.67).tolist() == [1, 1, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="keep is 0"):
        top_edges(mask, edge_index, 0)


def triangle_counter():
    """A model whose second logit grows with the number of edges and whose first is fixed."""
    model = KerGNN(
        1, 1, 2, num_layers=1, filter_size=2, num_steps=1, norm=None, normalize=None, update=None,
        step_weights=[0.0, 1.0], engine="torch", head_channels=1,
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        group = model.convs[0].groups[0]
        group.attributes.fill_(1)
        group.edge_weight.fill_(1)
        model.head[1].weight.copy_(torch.tensor([[0.0, 1.0]]))
        model.head[4].weight.copy_(torch.tensor([[0.0], [1.0]]))
        model.head[4].bias.copy_(torch.tensor([25.0, 0.0]))
    return model


def test_fidelity_of_a_model_that_needs_all_edges():
    """A triangle with a tail: the class depends on the edges of the triangle."""
    model = triangle_counter()
    edges = torch.tensor([[0, 1, 2, 2, 3, 4], [1, 2, 0, 3, 4, 5]])
    data = Data(x=torch.ones(6, 1), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    found = explain(model, data)
    assert int(found.target) == 1
    scores = fidelity_scores(model, [found], keep=0.5)
    assert scores.positive == 1
    assert scores.drop > 0.5
    everything = fidelity_scores(model, [found], keep=1.0)
    assert everything.drop == everything.random_drop > scores.drop - 1e-6
    assert everything.negative == 0
    # Random edges are drawn anew for every graph, and taken out of the graph.
    random = torch.rand(12, generator=torch.Generator().manual_seed(0))
    left = data.edge_index[:, top_edges(random, data.edge_index, 0.17) == 0]
    before, after = (model(data.x, e).softmax(1)[0, 1] for e in (data.edge_index, left))
    drawn = fidelity_scores(model, [found], keep=0.17, seed=0).random_drop
    assert drawn == pytest.approx((before - after).item(), abs=1e-6)
    assert drawn != pytest.approx(scores.drop)
    found.edge_mask = torch.zeros_like(found.edge_mask)
    found.edge_mask[[4, 10]] = 1  # the edge 3-4 alone
    wrong = fidelity_scores(model, [found], keep=0.1)
    assert wrong.positive == 0
    assert wrong.negative == 1
    assert wrong.characterization == 0
    assert wrong.drop < scores.drop


def test_stability_is_a_rank_correlation():
    same = [torch.tensor([0.1, 0.5, 0.9]), torch.tensor([1.0, 1.0])]
    other = [torch.tensor([0.2, 0.3, 4.0]), torch.tensor([0.0, 1.0])]
    reverse = [torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0.0, 1.0])]
    assert stability([same, other]) == pytest.approx(1)
    assert stability([same, reverse]) == pytest.approx(-1)
    assert math.isnan(stability([same[1:], other[1:]]))
    with pytest.raises(ValueError, match="at least two"):
        stability([same])


def test_similarity_of_filters_is_their_kernel():
    torch.manual_seed(0)
    conv = KerGNN(3, 4, 2, num_layers=1, filter_size=4).double().convs[0]
    B, W = conv.filters()
    W = W / W.flatten(1).norm(dim=1).view(-1, 1, 1)
    K = torch.zeros(4, 4, dtype=torch.float64)
    for i in range(4):
        for j in range(4):
            K[i, j] = sum(kronecker_kernel(B[i], W[i], B[j], W[j], p) for p in range(3))
    norm = K.diagonal().sqrt()
    torch.testing.assert_close(filter_similarity(conv), K / norm.outer(norm))


def test_equal_filters_are_redundant():
    model = KerGNN(3, 4, 2, num_layers=2, filter_size=3)
    before = redundancy(model)
    with torch.no_grad():
        for tensor in (model.convs[0].groups[0].edge_weight, model.convs[0].groups[0].attributes):
            tensor[:] = tensor[:1]
    after = redundancy(model)
    assert before[0] < 0.99
    assert after[0] == pytest.approx(1, abs=1e-5)
    assert after[1] == before[1]


def test_a_model_is_measured_in_one_call():
    torch.manual_seed(0)
    graphs = hexagons(12)
    x = torch.ones(graphs.num_nodes, 1)
    options = {"num_layers": 2, "filter_size": 3, "engine": "torch"}
    model = KerGNN(1, 4, 2, **options).eval()
    found = explanation_metrics(model, graphs, x, torch.arange(12), limit=4)
    assert set(found) == {
        "edge_auc", "node_auc", "fidelity_plus", "fidelity_minus", "characterization",
        "ablation_drop", "random_drop", "existence_rate", "redundancy_1", "redundancy_2",
    }  # fmt: skip
    made = [explain(model, d, int(d.y)) for d in graphs.to_data_list(x)[:4]]
    truth = [d.node_truth for d in graphs.to_data_list(x)[:4]]
    assert found["node_auc"] == truth_auc([e.node_contribution for e in made], truth).mean
    nodes = KerGNN(1, 4, 2, task="node", **options)
    assert "fidelity_plus" not in explanation_metrics(nodes, graphs, x, torch.arange(12))


def test_the_measures_of_a_run_are_written_down(tmp_path):
    graphs = hexagons(10)
    x = torch.ones(graphs.num_nodes, 1)
    model = KerGNN(1, 3, 2, num_layers=1, filter_size=2, engine="torch").eval()
    with torch.no_grad():
        model.convs[0].groups[0].edge_weight.fill_(-1)  # no filter has an edge
    subject = SimpleNamespace(
        model=model,
        graphs=graphs,
        batches=SimpleNamespace(x=x),
        split=SimpleNamespace(test=torch.tensor([0, 1])),
    )
    with pytest.raises(ConfigError, match="other was trained on Hexagons, not on the same data"):
        measure_run(subject, tmp_path, others=[SimpleNamespace(name="other", graphs=hexagons(4))])
    found = measure_run(subject, tmp_path)
    stored = json.loads((tmp_path / "explanation.json").read_text())
    assert stored["existence_rate"] is None
    assert stored["node_auc"] == found["node_auc"]


def test_runs_of_two_seeds_are_compared(mutag_subject, tmp_path):
    torch.manual_seed(1)
    same = measure_run(mutag_subject, tmp_path, others=[mutag_subject])
    assert same["stability"] == pytest.approx(1)
    other = copy.deepcopy(mutag_subject.model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.normal_()
    found = measure_run(mutag_subject, tmp_path, others=[replace(mutag_subject, model=other)])
    assert abs(found["stability"]) < 0.9
    assert (
        json.loads((tmp_path / "explanation.json").read_text())["stability"] == found["stability"]
    )


def test_existence_and_recovery():
    patterns = [nx.cycle_graph(3), nx.path_graph(3), nx.complete_graph(4), nx.empty_graph(2)]
    data = [nx.cycle_graph(5), nx.lollipop_graph(3, 2)]
    assert existence_rate(patterns, data) == pytest.approx(2 / 3)
    assert math.isnan(existence_rate([nx.empty_graph(1)], data))
    assert recovered(patterns, nx.complete_graph(3)) == [0]


def test_a_drop_that_random_edges_make_as_well_is_doubted():
    assert "say little" in doubt({"ablation_drop": 0.541, "random_drop": 0.541})
    assert "say little" in doubt({"ablation_drop": 0.40, "random_drop": 0.43})
    assert doubt({"ablation_drop": 0.60, "random_drop": 0.43}) == ""
    assert doubt({"ablation_drop": float("nan"), "random_drop": 0.43}) == ""
    assert doubt({}) == ""  # of nodes there is no such measure
