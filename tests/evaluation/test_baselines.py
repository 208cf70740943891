"""Every competitor runs under the same protocol."""

import dataclasses
import functools

import pytest
import torch

from kergnn import machines
from kergnn.baselines import wl
from kergnn.batches import GraphBatches
from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, get_split, load_graphs
from kergnn.edgebatches import EdgeBatches
from kergnn.egographs import EgoGraphs
from kergnn.evaluation import (
    ResultStore,
    SearchSpace,
    evaluate,
    make_executor,
    make_plan,
    run_trial,
)
from kergnn.models import model_info, model_names
from kergnn.preparation import (
    find_split,
    fingerprint,
    hide_test,
    prepare_trainer,
    resolve_config,
)

QUICK = {"epochs": 15, "hidden_channels": 16, "num_layers": 1, "dropout": 0.0}
UNKNOWN = {("rwgnn", "num_layers")}


def space(name):
    kernel = model_info(name).kind == "kernel"
    if kernel:
        return SearchSpace.from_values({"options": {"C": [1.0, 10.0]}})
    return SearchSpace.from_values({k: v for k, v in QUICK.items() if (name, k) not in UNKNOWN})


@pytest.mark.parametrize("name", [n for n in model_names() if "graph" in model_info(n).tasks])
def test_every_graph_system_is_evaluated(name, tmp_path):
    plan = make_plan("MUTAG", space(name), model=name, folds=1, repeats=1)
    store = ResultStore(tmp_path)
    record = evaluate(plan, store, make_executor("serial"))
    assert record["model"] == name
    (fold,) = record["folds"]
    assert fold["status"] == "done"
    if model_info(name).kind == "kernel":
        assert record["mean"] > 0.5
    else:
        loss = store.trial("MUTAG", fold["assessment"][0])["history"]["train_loss"]
        assert min(loss) < 0.95 * loss[0]


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_long_gram_matrix_tells_how_far_it_is(executor, tmp_path):
    plan = make_plan("MUTAG", space("gntk"), model="gntk", folds=1, repeats=1)
    details = []
    evaluate(
        plan,
        ResultStore(tmp_path),
        make_executor(executor),
        lambda status: details.append(status.detail),
    )
    told = [detail for detail in details if detail]
    assert len(told) > 10
    assert told[-1] == "Gram matrix of gntk: 100 %"
    assert details[-1] == ""


@pytest.fixture
def ring(monkeypatch):
    """Return a node set: two halves of a ring, with features that tell them apart."""
    node = torch.arange(60)
    graphs = GraphSet(
        "ring",
        "node",
        torch.tensor([60]),
        torch.stack([node, (node + 1) % 60]),
        (node >= 30).long(),
        ("left", "right"),
        attributes=torch.stack([(node >= 30).double(), torch.ones(60).double()], dim=1),
    )
    for module in ("protocol.load_graphs", "trial._load"):
        monkeypatch.setattr(f"kergnn.evaluation.{module}", lambda *_: graphs)
    return graphs


@pytest.mark.parametrize("name", [n for n in model_names() if "node" in model_info(n).tasks])
def test_every_node_system_is_evaluated(name, tmp_path, ring):
    quick = {**QUICK, "epochs": 40, "splits": "drawn"}
    quick |= {"input_dropout": 0.0} if name == "kergnn" else {}
    plan = make_plan("ring", SearchSpace.from_values(quick), model=name, folds=1, repeats=1)
    store = ResultStore(tmp_path)
    (fold,) = evaluate(plan, store, make_executor("serial"))["folds"]
    loss = store.trial("ring", fold["assessment"][0])["history"]["train_loss"]
    assert min(loss) < 0.95 * loss[0]


def test_a_gram_matrix_is_computed_once(tmp_path, monkeypatch):
    calls = []

    @functools.wraps(wl.gram)
    def counted(graphs, *arguments, gram=wl.gram, **parameters):
        if graphs.num_graphs > 2:  # not the check of the options
            calls.append(parameters)
        return gram(graphs, *arguments, **parameters)

    monkeypatch.setattr(wl, "gram", counted)
    two = {"options": {"C": [1.0, 10.0], "num_iterations": [2, 3]}}
    plan = make_plan("MUTAG", SearchSpace.from_values(two), model="wl", folds=2, repeats=1)
    record = evaluate(plan, ResultStore(tmp_path), make_executor("serial"))
    assert record["folds_done"] == 2
    assert [call["num_iterations"] for call in calls] == [2, 3]
    assert len(list((tmp_path / "kernels" / "MUTAG").glob("wl-*.safetensors"))) == 2


def test_a_machine_sees_the_training_part_only_and_its_price(tmp_path, monkeypatch):
    """Validation and test part are predicted from kernel values with the training part."""
    graphs = load_graphs("MUTAG")
    fitted = []

    class Spy(machines.KernelMachine):
        def fit(self, K, y):
            fitted.append((self.C, K.copy(), y.copy()))
            return super().fit(K, y)

    monkeypatch.setattr(machines, "KernelMachine", Spy)
    config = {"options": {"C": 7.0, "num_iterations": 2}}
    plan = make_plan("MUTAG", SearchSpace.from_values(config), model="wl", folds=1, repeats=1)
    trial = plan.folds[0].assessment(plan.configs[0], seed=0)
    record = run_trial(trial, kernels=tmp_path)
    split = get_split(graphs, 0)
    x = Features.fit("label", graphs, torch.arange(graphs.num_nodes))(graphs)
    K = torch.from_numpy(wl.gram(graphs, x, num_iterations=2))[:, split.train]
    ((C, K_train, y_train),) = fitted
    assert C == 7.0
    assert torch.allclose(torch.from_numpy(K_train), K[split.train])
    assert y_train.tolist() == graphs.y[split.train].tolist()
    for part, figures in ((split.validation, record["validation"]), (split.test, record["test"])):
        machine = machines.KernelMachine(2, 7.0).fit(K_train, y_train)
        predicted = torch.from_numpy(machine.predict(K[part].numpy()))
        assert figures["accuracy"] == (predicted == graphs.y[part]).double().mean()


def test_anchors_come_from_the_training_part(tmp_path):
    """Other labels in the test part change no value between training graphs."""
    graphs = load_graphs("MUTAG")
    split = get_split(graphs, 0)
    nodes = torch.isin(graphs.graph_of, split.test)
    labels = graphs.labels.clone()
    labels[nodes] = labels[nodes].flip(0)
    config = RunConfig(model="gckn-unsupervised", hidden_channels=16, num_layers=1)
    found = []
    for data in (graphs, dataclasses.replace(graphs, labels=labels)):
        x = Features.fit("label", data, torch.arange(data.num_nodes))(data)
        found.append(machines.gram_matrix(config, data, x, split.train, tmp_path))
    train = split.train
    assert torch.allclose(found[0][train][:, train], found[1][train][:, train], rtol=1e-12)
    assert not torch.allclose(found[0], found[1])
    assert len(list((tmp_path / "MUTAG").glob("*.safetensors"))) == 2


def test_a_gram_matrix_that_cannot_be_kept_is_used(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(machines, "save_tensors", full)
    plan = make_plan("MUTAG", space("wl"), model="wl", folds=1, repeats=1)
    assert evaluate(plan, ResultStore(tmp_path), make_executor("serial"))["folds_done"] == 1


def test_repeats_of_a_kernel_are_the_same(tmp_path):
    plan = make_plan("MUTAG", space("wl"), model="wl", folds=1, repeats=2)
    (fold,) = evaluate(plan, ResultStore(tmp_path), make_executor("serial"))["folds"]
    assert fold["accuracies"][0] == fold["accuracies"][1]


def test_edge_batches_hold_the_same_graphs_as_ego_batches():
    graphs = load_graphs("MUTAG")
    x = torch.randn(graphs.num_nodes, 3)
    ego = EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes, 1)
    which = torch.tensor([5, 0, 187, 5])
    cpu = torch.device("cpu")
    ours = GraphBatches(graphs, x, ego, cpu)(which)
    theirs = EdgeBatches(graphs, x, cpu)(which)
    for name in ("x", "batch", "y"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    again = EgoGraphs.from_edge_index(theirs.edge_index, len(theirs.x), 1)
    for name in ("index", "size", "hop", "degree", "neighbor"):
        assert torch.equal(getattr(again, name), getattr(ours.ego, name)), name


def test_edge_batches_carry_the_features_of_their_edges():
    """A feature that names both ends stays with its edge, whatever graphs are taken."""
    graphs = load_graphs("MUTAG")
    node = torch.arange(graphs.num_nodes, dtype=torch.float)
    batches = EdgeBatches(graphs, node.unsqueeze(1), torch.device("cpu"), graphs.simple_edges.T)
    batch = batches(torch.tensor([5, 0, 187, 5]))
    assert batch.edge_attr.shape == (batch.edge_index.size(1), 2)
    assert torch.equal(batch.x.flatten()[batch.edge_index].T, batch.edge_attr.float())


def test_only_ecc_is_given_the_bonds_of_mutag():
    graphs = load_graphs("MUTAG")
    features = Features.fit("label", graphs, torch.arange(graphs.num_nodes))
    assert features.edge_names == (("label", ("0", "1", "2", "3")),)
    for model in ("ecc", "gin"):
        config = resolve_config(RunConfig(model=model, epochs=1), graphs)
        split = find_split(config, graphs, None)
        trainer, _ = prepare_trainer(config, hide_test(graphs, None, split))
        given = trainer.batches(torch.arange(4)).edge_attr
        assert (given is not None) == (model == "ecc")
    bonds = torch.from_numpy(graphs.edge_values["label"])
    assert torch.equal(features.of_edges(graphs).sum(0).long(), bonds.bincount())


def test_other_bonds_are_other_data_for_ecc_alone():
    graphs = load_graphs("MUTAG")
    bonds = {"label": graphs.edge_values["label"][::-1]}
    other = dataclasses.replace(graphs, edge_values=bonds)
    assert fingerprint("gin", graphs) == fingerprint("gin", other) == graphs.fingerprint
    assert fingerprint("ecc", graphs) != fingerprint("ecc", other)
    assert fingerprint("ecc", graphs).startswith(graphs.fingerprint)
