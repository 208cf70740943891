import json

import networkx as nx
import pytest
import torch

from kergnn import KerGNNClassifier, RandomWalkKernel
from kergnn.config import ConfigError, RunConfig
from kergnn.data import DataError, Features, GraphSet, get_split, load_graphs
from kergnn.data.subtrees import DEPTH
from kergnn.evaluation import SearchSpace, default_space, make_plan, run_trial
from kergnn.models import build_model, model_info, model_names
from kergnn.preparation import make_batches, resolve_config
from kergnn.testing import unfolded_color


def nodes_of(graphs, which):
    return torch.isin(graphs.graph_of, torch.as_tensor(which)).nonzero().flatten()


def test_words_tell_subtrees_apart_that_two_training_graphs_have():
    """By brute force: unfold the neighbourhood of every node of some molecules."""
    graphs = load_graphs("MUTAG").select(torch.arange(6))
    train = [0, 1, 2, 3]
    fitted = Features.fit("label+subtrees", graphs, nodes_of(graphs, train))
    words = fitted(graphs)[:, -DEPTH:].long()
    adjacency = torch.zeros(graphs.num_nodes, graphs.num_nodes, dtype=torch.long)
    adjacency[tuple(graphs.simple_edges)] = 1
    labels = [graphs.label_names[0][i] for i in graphs.labels[:, 0].tolist()]
    for k in range(DEPTH):
        unfolded = [unfolded_color(adjacency, labels, v, k + 1) for v in range(graphs.num_nodes)]
        owners = {}
        for v, subtree in enumerate(unfolded):
            owners.setdefault(subtree, set()).add(int(graphs.graph_of[v]))
        known = {s for s, found in owners.items() if len(found & set(train)) >= 2}
        assert fitted.vocabulary[k] == len(known)
        word_of = {}
        for v, subtree in enumerate(unfolded):
            word = int(words[v, k])
            assert (word > 0) == (subtree in known)
            if word:
                assert word_of.setdefault(subtree, word) == word
        assert sorted(word_of.values()) == list(range(1, len(known) + 1))


def test_words_are_the_last_columns_and_survive_json():
    graphs = load_graphs("MUTAG")
    every = torch.arange(graphs.num_nodes)
    fitted = Features.fit("subtrees+label", graphs, every)
    assert fitted.names[-DEPTH:] == [f"subtree of depth {k}" for k in range(1, DEPTH + 1)]
    x = fitted(graphs)
    assert x.shape == (graphs.num_nodes, len(fitted.names))
    assert torch.equal(x[:, :-DEPTH], Features.fit("label", graphs, every)(graphs))
    again = Features.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again == fitted
    assert torch.equal(again(graphs), x)


def test_without_labels_subtrees_are_of_degrees_and_of_one_graph_those_of_two_nodes():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    path = GraphSet("path", "node", torch.tensor([4]), edges, torch.zeros(4).long(), ("a",))
    fitted = Features.fit("degree+subtrees", path, torch.arange(4))
    assert fitted.vocabulary == (2,) * DEPTH
    x = fitted(path)
    assert torch.equal(x[[0, 1]], x[[3, 2]])
    assert (x[0, 1:] != x[1, 1:]).all()
    assert Features.fit("degree+subtrees", path, torch.tensor([0, 1])).vocabulary == (0,) * DEPTH


def test_subtrees_alone_are_refused_and_kernels_have_no_use_for_them():
    graphs = load_graphs("MUTAG")
    with pytest.raises(DataError, match=r"join it to others by \+"):
        Features.fit("subtrees", graphs, torch.arange(9))
    with pytest.raises(ConfigError, match="'wl' has no use for words"):
        resolve_config(RunConfig(model="wl", features="label+subtrees"), graphs)
    with pytest.raises(ValueError, match="no use for words"):
        RandomWalkKernel(features="degree+subtrees").fit([nx.path_graph(4)])


@pytest.mark.parametrize("model", ["kergnn", "gin", "gckn", "diffpool"])
def test_networks_take_words_of_the_training_part(model, monkeypatch):
    fitted = []
    make = make_batches
    monkeypatch.setattr("kergnn.evaluation.fold._last", None)
    monkeypatch.setattr(
        "kergnn.preparation.make_batches",
        lambda config, graphs, features, *rest: (
            fitted.append(features) or make(config, graphs, features, *rest)
        ),
    )
    values = {"features": "label+subtrees", "hidden_channels": 4, "epochs": 1}
    plan = make_plan("MUTAG", SearchSpace.from_values(values), model, folds=1, repeats=1)
    record = run_trial(plan.folds[0].assessment(plan.configs[0], seed=1))
    graphs = load_graphs("MUTAG")
    alone = graphs.select(get_split(graphs, 0).train)
    expected = Features.fit("label+subtrees", alone, torch.arange(alone.num_nodes))
    assert fitted[0].subtrees == expected.subtrees
    assert min(map(len, expected.subtrees)) > 10
    assert len(record["predictions"]["predicted"]) == len(get_split(graphs, 0).test)


def test_competitors_drop_words_as_kergnn_does():
    graphs = load_graphs("MUTAG")
    config = RunConfig(model="gin", features="label+subtrees", input_dropout=0.5)
    model = build_model(resolve_config(config, graphs), 9, 2, "graph", vocabulary=(3, 4))
    assert model.words.dropout.p == 0.5
    with pytest.raises(ConfigError, match="input_dropout: model 'gin' has no use for it"):
        resolve_config(config.replace({"features": "label"}), graphs)


@pytest.mark.parametrize("model", model_names())
def test_every_model_has_a_default_search_where_kergnn_has_words(model):
    info, graphs = model_info(model), load_graphs("MUTAG")
    if "graph" in info.tasks:
        space = default_space("NCI1", model)
        recipes = {c.features for c in space.grid(RunConfig(model=model))}
        assert ("label+subtrees" in recipes) == (info.kind != "kernel")
        for config in space.grid(RunConfig(model=model)):
            resolve_config(config, graphs)


def test_words_need_a_map():
    config = RunConfig(features="label+subtrees", input_channels=0)
    with pytest.raises(ConfigError, match="input_channels is 0: with features"):
        resolve_config(config, load_graphs("MUTAG"))


def test_a_warm_start_needs_the_same_words():
    """Same shapes, other labels: as many subtrees, and none of them the same."""
    graphs = {}
    for names in ("ab", "cd"):
        graphs[names] = [make(n) for n in range(5, 9) for make in (nx.cycle_graph, nx.path_graph)]
        for graph in graphs[names]:
            nx.set_node_attributes(graph, {v: names[v % 2] for v in graph}, "label")
    clf = KerGNNClassifier(features="degree+subtrees", epochs=1, warm_start=True, random_state=0)
    clf.fit(graphs["ab"], [0, 1] * 4)
    clf.fit(graphs["ab"], [0, 1] * 4)
    with pytest.raises(ValueError, match="subtrees must be those of the last fit"):
        clf.fit(graphs["cd"], [0, 1] * 4)


def test_a_classifier_with_words_can_be_pickled_and_knows_new_graphs():
    from pickle import dumps, loads

    graphs = [make(n) for n in range(5, 13) for make in (nx.cycle_graph, nx.path_graph)]
    clf = KerGNNClassifier(features="degree+subtrees", epochs=3, random_state=0)
    clf.fit(graphs, ["ring", "path"] * 8)
    new = [nx.star_graph(4), nx.path_graph(7)]
    assert (loads(dumps(clf)).predict_proba(new) == clf.predict_proba(new)).all()
    assert len(clf.explain(new[1]).node_contribution) == 7
