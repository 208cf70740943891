import math

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, recall_score, roc_auc_score

from kergnn import EgoGraphs
from kergnn._denormals import flushed_denormals
from kergnn.batches import GraphBatches
from kergnn.checkpoints import TrainingState
from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, get_split, load_graphs
from kergnn.models import build_model
from kergnn.prediction import metrics, predict_probabilities
from kergnn.preparation import Development, ego_graphs, prepare_trainer, resolve_config
from kergnn.training import (
    Trainer,
    _epoch_seed,
    learning_rate,
    resolve_device,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def mutag():
    graphs = load_graphs("MUTAG")
    ego = EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes, 1, 10)
    x = Features.fit("label", graphs, torch.arange(graphs.num_nodes))(graphs)
    return graphs, x, ego


def trainer(mutag, part=60, **changes):
    graphs, x, ego = mutag
    config = RunConfig(hidden_channels=8, epochs=4, batch_size=16).replace(changes)
    split = get_split(graphs, 0)
    model = build_model(config, x.size(1), graphs.num_classes, "graph")
    batches = GraphBatches(graphs, x, ego, CPU)
    return Trainer(config, model, graphs, batches, split.train[:part], split.validation)


def figures(history):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def test_batches_are_the_graphs_in_the_asked_order(mutag):
    graphs, x, ego = mutag
    which = torch.tensor([5, 0, 187, 5])
    batch = GraphBatches(graphs, x, ego, CPU)(which)
    assert batch.num_graphs == 4
    assert torch.equal(batch.y, graphs.y[which])
    assert batch.batch.bincount().tolist() == graphs.size[which].tolist()
    start = 0
    for position, g in enumerate(which.tolist()):
        nodes = torch.arange(int(graphs.ptr[g]), int(graphs.ptr[g + 1]))
        assert torch.equal(batch.x[batch.batch == position], x[nodes])
        for i, node in enumerate(nodes.tolist()):
            index, hop, edges = batch.ego[start + i]
            want_index, want_hop, want_edges = ego[node]
            assert torch.equal(index - start, want_index - nodes[0])
            assert torch.equal(hop, want_hop)
            assert torch.equal(edges, want_edges)
        start += len(nodes)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(mutag):
    runs = []
    for seed in (1, 1, 2):
        t = trainer(mutag, seed=seed)
        t.run()
        runs.append(t)
    assert figures(runs[0].state.history) == figures(runs[1].state.history)
    for name, tensor in runs[0].model.state_dict().items():
        assert torch.equal(tensor, runs[1].model.state_dict()[name]), name
    assert figures(runs[0].state.history) != figures(runs[2].state.history)


def test_a_restored_state_goes_on_as_if_nothing_had_happened(mutag):
    whole = trainer(mutag, epochs=5)
    whole.run()
    first = trainer(mutag, epochs=5)
    for _ in range(2):
        first._epoch()
    second = trainer(mutag, epochs=5)
    second.restore(first.state)
    second.run()
    assert figures(second.state.history) == figures(whole.state.history)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, second.model.state_dict()[name]), name


def test_every_epoch_has_its_own_order(mutag):
    t = trainer(mutag)
    orders = []
    take = t.batches.__call__

    class Spy:
        y, x, size, task = t.batches.y, t.batches.x, t.batches.size, "graph"

        def __call__(self, which):
            orders.append(which.tolist())
            return take(which)

    t.batches = Spy()
    for _ in range(2):
        t._epoch()
    training = [o for o in orders if len(o) in (16, 12)]
    first, second = ([g for o in training[i : i + 4] for g in o] for i in (0, 4))
    assert sorted(first) == sorted(second) == t.train_part.tolist()
    assert first != second


def test_the_selected_epoch_is_the_best_on_validation_and_its_weights_remain(mutag):
    t = trainer(mutag, epochs=8)
    t.run()
    key = [(r["validation_accuracy"], -r["validation_loss"]) for r in t.state.history]
    assert t.state.best_epoch == 1 + max(range(8), key=lambda e: key[e])
    split = get_split(mutag[0], 0)
    probabilities = predict_probabilities(t.model, t.batches, split.validation)
    best = t.state.history[t.state.best_epoch - 1]
    again = metrics(probabilities, mutag[0].y[split.validation])
    assert again["accuracy"] == best["validation_accuracy"]


def test_training_stops_when_validation_does_not_improve(mutag):
    t = trainer(mutag, epochs=100, patience=2, learning_rate=1e-9)
    t.run()
    assert t.state.epoch < 100
    assert t.state.epoch == t.state.best_epoch + 2


def test_the_last_epoch_is_kept_on_demand_and_validation_stops_nothing(mutag):
    selected = trainer(mutag, epochs=6, patience=1, learning_rate=0.1)
    selected.run()
    assert selected.state.best_epoch < selected.state.epoch < 6
    t = trainer(mutag, epochs=6, patience=1, learning_rate=0.1, keep_epoch="last")
    seen = []
    t.run(lambda state: seen.append(state.weights))
    assert t.state.best_epoch == t.state.epoch == 6
    assert t.state.best_figures["loss"] == t.state.history[-1]["validation_loss"]
    for name, tensor in t.model.state_dict().items():
        assert torch.equal(tensor, seen[-1][name]), name


def test_without_a_validation_part_only_the_last_epoch_can_be_kept(mutag):
    t = trainer(mutag, epochs=3, keep_epoch="last")
    none = t.validation_part[:0]
    alone = Trainer(t.config, t.model, t.graphs, t.batches, t.train_part, none)
    alone.run()
    assert alone.state.best_epoch == 3
    assert alone.state.best_figures == {}
    assert set(alone.state.history[0]) == {"epoch", "train_loss", "learning_rate", "seconds"}
    chosen = t.config.replace({"keep_epoch": None})
    with pytest.raises(ValueError, match="unless keep_epoch is 'last'"):
        Trainer(chosen, t.model, t.graphs, t.batches, t.train_part, none)


def test_predictions_do_not_depend_on_how_graphs_are_cut_into_pieces(mutag, monkeypatch):
    t = trainer(mutag)
    which = torch.arange(50)
    whole = predict_probabilities(t.model, t.batches, which)
    monkeypatch.setattr("kergnn.prediction._NODES_AT_ONCE", 30)
    torch.testing.assert_close(predict_probabilities(t.model, t.batches, which), whole)
    torch.testing.assert_close(whole.sum(1), torch.ones(50))


def test_a_model_can_learn_its_training_part_by_heart(mutag):
    """Twenty molecules, no dropout: everything else working, they are fitted completely."""
    t = trainer(mutag, part=20, epochs=60, patience=60, dropout=0.0, batch_size=20)
    while not t.finished:
        t._epoch()
    probabilities = predict_probabilities(t.model, t.batches, t.train_part)
    assert metrics(probabilities, mutag[0].y[t.train_part])["accuracy"] == 1


def test_nodes_are_classified_too():
    """Two cliques joined by an edge, all nodes alike but for their degree... and their side."""
    torch.manual_seed(0)
    clique = torch.combinations(torch.arange(10)).T
    edge_index = torch.cat([clique, clique + 10, torch.tensor([[0], [10]])], dim=1)
    graphs = GraphSet(
        name="cliques",
        task="node",
        size=torch.tensor([20]),
        edge_index=edge_index,
        y=torch.arange(20) // 10,
        class_names=("left", "right"),
        attributes=torch.randn(20, 4) + torch.arange(20).unsqueeze(1) // 10,
    )
    ego = EgoGraphs.from_edge_index(edge_index, 20)
    config = RunConfig(hidden_channels=8, epochs=30, num_layers=1, metric="roc_auc")
    model = build_model(config, 4, 2, "node")
    train, validation = torch.arange(0, 20, 2), torch.arange(1, 20, 2)
    batches = GraphBatches(graphs, graphs.attributes, ego, CPU)
    t = Trainer(config, model, graphs, batches, train, validation)
    t.run()
    assert t.state.history[t.state.best_epoch - 1]["validation_accuracy"] > 0.9


def test_a_training_step_is_adam_with_all_settings(mutag):
    """One epoch of one batch, against the same step written out by hand."""
    changes = {
        "batch_size": 60,
        "learning_rate": 0.02,
        "schedule": "cosine",
        "weight_decay": 0.1,
        "clip": 0.01,
        "class_weights": True,
        "dropout": 0.0,
    }
    t, other = trainer(mutag, **changes), trainer(mutag, **changes)
    t.state = other.state = TrainingState(epoch=2)  # in the middle of the schedule
    t._train_and_validate()

    torch.manual_seed(_epoch_seed(0, 2))
    batch = other.batches(other.train_part[torch.randperm(60)])
    other.model.train()
    optimizer = torch.optim.Adam(
        other.model.parameters(), lr=0.02 * 0.5 * (1 + math.cos(math.pi / 2)), weight_decay=0.1
    )
    logits = other.model(batch.x, batch.ego, batch.batch, batch.num_graphs)
    counts = batch.y.bincount()
    weight = 60 / (2 * counts.float())
    torch.nn.functional.cross_entropy(logits, batch.y, weight=weight).backward()
    torch.nn.utils.clip_grad_norm_(other.model.parameters(), 0.01)
    optimizer.step()
    for (name, got), want in zip(t.model.named_parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(got, want, msg=lambda m, n=name: f"{n}: {m}")


def test_the_metric_decides_which_epoch_is_best(mutag):
    t = trainer(mutag, metric="macro_f1")
    rows = [(0.9, 0.5), (0.5, 0.9), (0.7, 0.9)]
    for accuracy, f1 in rows:
        t._record(
            {"validation_accuracy": accuracy, "validation_macro_f1": f1, "validation_loss": 1.0}
        )
    assert t.state.best_epoch == 2


def test_norms_are_calibrated_on_a_mixture_of_training_graphs(mutag, monkeypatch):
    """Files are often sorted by class: neither the first graphs will do nor others than these."""
    monkeypatch.setattr("kergnn.training._CALIBRATION_GRAPHS", 24)
    t, seen = trainer(mutag), []

    def record(model, batches, which, whole=False):
        seen.append(which)
        return torch.zeros(len(which), 2)

    monkeypatch.setattr("kergnn.training.outputs_of", record)
    torch.manual_seed(0)
    t._calibrate()
    assert [len(part) for part in seen] == [16, 8]
    chosen = torch.cat(seen)
    assert set(chosen.tolist()) < set(t.train_part.tolist())
    assert not torch.equal(chosen.sort().values, t.train_part[:24])


def test_without_a_validation_part_norms_are_calibrated_in_the_last_epoch_alone(mutag):
    def weights(every_epoch):
        torch.manual_seed(0)
        t, seen = trainer(mutag, keep_epoch="last"), []
        t.validation_part = t.validation_part[:0]
        calibrate = t._calibrate
        t._calibrate = lambda: seen.append(t.state.epoch + 1) or calibrate()
        t.run(lambda state: calibrate() if every_epoch else None)
        assert seen == [4]
        return t.model.state_dict()

    once, often = weights(every_epoch=False), weights(every_epoch=True)
    for name, tensor in once.items():
        assert torch.equal(tensor, often[name]), name


def test_class_weights_are_inverse_to_the_counts(mutag):
    t = trainer(mutag, class_weights=True)
    counts = t.graphs.y[t.train_part].bincount()
    torch.testing.assert_close(t.class_weight, 60 / (2 * counts.float()))


def test_kernels_and_step_weights_are_read_from_text():
    config = RunConfig(hidden_channels=8, kernel="rw:6, gcn:2", step_weights="1, 0.5, 0")
    conv = build_model(config, 3, 2, "graph").convs[0]
    assert conv.kernels == {"rw": 6, "gcn": 2}
    assert conv.step_weight.tolist() == [1, 0.5, 0]


def test_the_restart_reaches_the_model():
    assert build_model(RunConfig(restart=0.3), 3, 2, "node").restart == 0.3
    assert build_model(RunConfig(), 3, 2, "node").restart is None
    with pytest.raises(ValueError, match=r"restart is 0\.3: it must be None"):
        build_model(RunConfig(restart=0.3), 3, 2, "graph")


def test_learning_rates_by_epoch():
    halve = RunConfig(learning_rate=0.08)
    assert [learning_rate(halve, e) for e in (0, 49, 50, 100)] == [0.08, 0.08, 0.04, 0.02]
    cosine = RunConfig(learning_rate=0.08, schedule="cosine", epochs=100)
    assert [round(learning_rate(cosine, e), 6) for e in (0, 50, 100)] == [0.08, 0.04, 0]
    assert learning_rate(RunConfig(schedule="constant"), 500) == 0.01


@pytest.mark.parametrize("num_classes", [2, 4])
def test_metrics_equal_those_of_scikit_learn(num_classes):
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        scores = torch.randint(4, (9, num_classes), generator=generator)  # with ties
        y = torch.randint(num_classes, (9,), generator=generator)  # a class may be missing
        found = metrics(scores.float().softmax(1), y)
        predicted = scores.argmax(1)
        expected = {
            "accuracy": accuracy_score(y, predicted),
            "balanced_accuracy": recall_score(y, predicted, labels=y.unique(), average="macro"),
            "macro_f1": f1_score(y, predicted, average="macro", zero_division=0),
        }
        if num_classes == 2 and len(y.unique()) == 2:
            expected["roc_auc"] = roc_auc_score(y, scores.float().softmax(1)[:, 1])
        assert found == pytest.approx(expected)


def test_metrics_by_hand():
    probabilities = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    found = metrics(probabilities, torch.tensor([0, 0, 1, 1]))
    # Predicted 0, 0, 0, 1: recalls 1 and 1/2; F1 is 0.8 for class 0, 2/3 for class 1.
    assert found["accuracy"] == 0.75
    assert found["balanced_accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert found["roc_auc"] == 1.0
    assert "roc_auc" not in metrics(probabilities, torch.tensor([0, 0, 0, 0]))
    assert "roc_auc" not in metrics(torch.ones(2, 3) / 3, torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "f1"}, "metric is 'f1': it must be one of 'accuracy'"),
        ({"schedule": "step"}, "schedule is 'step'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"patience": 0}, "patience is 0"),
        ({"keep_epoch": "first"}, "keep_epoch is 'first': it must be one of None, 'last'"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: it must be above 0"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"clip": 0.0}, "clip is 0.0"),
    ],
)
def test_bad_settings_are_named(mutag, changes, message):
    with pytest.raises(ValueError, match=message):
        trainer(mutag, **changes)


def test_a_loss_that_is_not_finite_stops_the_run(mutag):
    t = trainer(mutag)
    with torch.no_grad():
        t.model.head[-1].bias.fill_(math.inf)
    with pytest.raises(
        FloatingPointError, match="diverged in epoch 1: try a smaller learning_rate"
    ):
        t.run()


def test_auto_takes_what_there_is():
    with pytest.raises(ValueError, match="device is 'abacus': it must be auto, cpu"):
        resolve_device("abacus")
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_filters_of_a_node_task_start_from_all_neighbourhoods():
    node = torch.arange(30)
    edges = torch.stack([node, (node + 1) % 30])
    graphs = GraphSet("ring", "node", torch.tensor([30]), edges, (node >= 15).long(), ("a", "b"))
    values = {"task": "node", "features": "const", "filter_init": "ego", "epochs": 1}
    config = resolve_config(RunConfig().replace(values), graphs)
    development = Development(graphs, ego_graphs(config, graphs), node[::2], node[1::2])
    trainer, _ = prepare_trainer(config, development)
    adjacency, _ = trainer.model.convs[0].filters()
    path = adjacency[0] > 0  # every neighbourhood of a ring is a path of three
    assert path.sum() == 4


class WithIdleWeights(torch.nn.Module):
    """A model beside weights that get no gradient, and its gradient is a zero, not none."""

    def __init__(self, model):
        super().__init__()
        self.model, self.idle = model, torch.nn.Parameter(torch.ones(3))

    def forward(self, *inputs):
        return self.model(*inputs) + 0 * self.idle.sum()


def test_moments_too_small_to_move_a_weight_end_at_zero(mutag):
    """Numbers without a normal form make steps slow. All others are what they were."""
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor has no such mode")
    plain, run = trainer(mutag, epochs=2), trainer(mutag, epochs=2)
    plain.run()
    parts = run.graphs, run.batches, run.train_part, run.validation_part
    run = Trainer(run.config, WithIdleWeights(run.model), *parts)

    def shrink(state):
        moments = run.optimizer.state[run.model.idle]
        moments["exp_avg"].copy_(torch.tensor([1.2e-38, -1.2e-38, 1e-10]))

    run.run(shrink)
    run._epoch()
    left = run.optimizer.state[run.model.idle]["exp_avg"]
    assert left[:2].tolist() == [0, 0]
    assert left[2] > 1e-12
    losses, expected = ([row["train_loss"] for row in r.state.history[:2]] for r in (run, plain))
    assert losses == expected


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mode_of_the_processor_is_left_as_it_was(before, dtype):
    if not torch.set_flush_denormal(before):
        pytest.skip("this processor has no such mode")
    tiny = torch.tensor(2e-38)
    torch.set_default_dtype(dtype)
    try:
        with flushed_denormals():
            assert tiny * 0.1 == 0
        assert bool(tiny * 0.1 == 0) == before
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_flush_denormal(False)
