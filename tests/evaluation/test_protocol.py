import dataclasses
import inspect
import json
import statistics

import pytest
import torch

from kergnn import EgoGraphs
from kergnn.config import ConfigError, RunConfig
from kergnn.data import DataError, GraphSet, Split, get_split, load_graphs
from kergnn.evaluation import SearchSpace, Trial, make_plan, run_trial
from kergnn.evaluation.protocol import run_fold, summarize, validation_score
from kergnn.evaluation.search import exhaustive
from kergnn.evaluation.trial import failed_record, train
from kergnn.preparation import Development, hide_test
from kergnn.training import Trainer


def ego_of(graphs):
    return EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes, 1, 10)


def test_selection_is_given_no_test_part():
    """By signature: training takes a Development, and that has two parts and no third."""
    parameters = inspect.signature(train).parameters
    assert [p.annotation for p in parameters.values()] == ["RunConfig", "Development"]
    names = {field.name for field in dataclasses.fields(Development)}
    assert names == {"graphs", "ego", "train", "validation"}


def test_graphs_of_the_test_part_are_not_in_the_development_set():
    graphs = load_graphs("MUTAG")
    split = get_split(graphs, 3)
    development = hide_test(graphs, ego_of(graphs), split)
    assert development.graphs.num_graphs == len(split.train) + len(split.validation)
    for part, original in (
        (development.train, split.train),
        (development.validation, split.validation),
    ):
        assert torch.equal(development.graphs.y[part], graphs.y[original])
        for here, there in zip(part.tolist(), original.tolist(), strict=True):
            mine, theirs = (
                g.labels[int(g.ptr[i]) : int(g.ptr[i + 1])]
                for g, i in ((development.graphs, here), (graphs, there))
            )
            assert torch.equal(mine, theirs)
    again = ego_of(development.graphs)
    for name in ("index", "size", "hop", "degree", "neighbor"):
        assert torch.equal(getattr(development.ego, name), getattr(again, name)), name


def test_classes_of_test_nodes_are_hidden():
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    y = torch.tensor([0, 1, 1, 0])
    graphs = GraphSet("path", "node", torch.tensor([4]), edge_index, y, ("a", "b"))
    split = Split("mine", torch.tensor([0, 1]), torch.tensor([3]), torch.tensor([2]))
    development = hide_test(graphs, ego_of(graphs), split)
    assert development.graphs.y.tolist() == [0, 1, -1, 0]
    assert development.graphs.num_nodes == 4


def scrambled(graphs, split):
    """Return the set with other classes and labels in the test part."""
    y, labels = graphs.y.clone(), graphs.labels.clone()
    y[split.test] = 1 - y[split.test]
    nodes = torch.isin(graphs.graph_of, split.test)
    labels[nodes] = labels[nodes].flip(0)
    return dataclasses.replace(graphs, y=y, labels=labels)


def test_a_selection_trial_does_not_depend_on_the_test_part(monkeypatch):
    graphs = load_graphs("MUTAG")
    split = get_split(graphs, 0)
    config = RunConfig(features="label", hidden_channels=4, epochs=2, dropout=0.2)
    records = {}
    for name, data in (("real", graphs), ("scrambled", scrambled(graphs, split))):
        monkeypatch.setattr("kergnn.evaluation.trial._load", lambda *_, data=data: data)
        monkeypatch.setattr("kergnn.evaluation.trial.find_split", lambda *_: split)
        for assess in (False, True):
            trial = Trial(config, "MUTAG", data.fingerprint, split.name, split.hash, assess)
            records[name, assess] = run_trial(trial)
    for key in ("history", "validation", "best_epoch"):
        assert records["real", False][key] == records["scrambled", False][key]
        assert records["real", True][key] == records["scrambled", True][key]
    assert records["real", True]["test"] != records["scrambled", True]["test"]
    assert "test" not in records["real", False]
    assert "predictions" not in records["real", False]


def test_an_assessment_record_holds_the_prediction_of_every_test_graph(small_plan):
    plan = small_plan(folds=1)
    record = run_trial(plan.folds[0].assessment(plan.configs[0], seed=1))
    graphs, split = load_graphs("MUTAG"), get_split(load_graphs("MUTAG"), 0)
    predictions = record["predictions"]
    assert predictions["graph"] == split.test.tolist()
    assert predictions["true"] == graphs.y[split.test].tolist()
    right = [p == t for p, t in zip(predictions["predicted"], predictions["true"], strict=True)]
    assert record["test"]["accuracy"] == statistics.fmean(right)
    for row, predicted in zip(predictions["probabilities"], predictions["predicted"], strict=True):
        assert sum(row) == pytest.approx(1, abs=1e-5)
        assert row.index(max(row)) == predicted


def test_a_key_tells_trials_apart_by_content(small_plan):
    plan = small_plan()
    fold, other = plan.folds
    config = plan.configs[0]
    trial = fold.trial(config, seed=0)
    same = fold.trial(config.replace({"device": "cpu", "dataset": "copy", "fold": 7}), seed=0)
    assert same.key == trial.key
    different = [
        fold.trial(config, seed=1),
        fold.assessment(config, seed=0),
        other.trial(config, seed=0),
        fold.trial(plan.configs[1], seed=0),
        dataclasses.replace(trial, fingerprint="x"),
    ]
    assert len({t.key for t in [trial, *different]}) == 6


def fake(trial, score, test=None):
    """Return a record as a trial would leave it."""
    made = {"key": trial.key, "status": "done", "metric": "accuracy"}
    made["validation"] = {"accuracy": score, "loss": 1 - score}
    return {**made, "test": {"accuracy": test}} if test is not None else made


def test_a_fold_selects_by_validation_and_averages_its_repeats(small_plan):
    plan = small_plan(folds=1)
    run = run_fold(plan.folds[0], exhaustive(plan.configs), repeats=3, seed=10)
    trials = next(run)
    assert [t.config.seed for t in trials] == [10, 10, 10]
    assert not any(t.assess for t in trials)
    trials = run.send([fake(t, s) for t, s in zip(trials, (0.5, 0.9, 0.7), strict=True)])
    assert [t.config.seed for t in trials] == [11, 12, 13]
    assert all(t.assess and t.config.num_layers == 2 for t in trials)
    with pytest.raises(StopIteration) as stop:
        run.send([fake(t, 0.5, test) for t, test in zip(trials, (0.6, 0.7, 0.95), strict=True)])
    fold = stop.value.value
    assert fold["test"] == {"accuracy": pytest.approx(0.75)}
    assert fold["config"]["num_layers"] == 2
    assert len(fold["selection"]) == len(fold["assessment"]) == 3


@pytest.mark.parametrize("broken", [(1,), (0, 1, 2)])
def test_failures_are_told_and_not_averaged_away(small_plan, broken):
    plan = small_plan(folds=1)
    run = run_fold(plan.folds[0], exhaustive(plan.configs), repeats=2, seed=0)
    trials = next(run)
    failed = [{"key": t.key, "status": "failed"} for t in trials]
    records = [failed[i] if i in broken else fake(t, i / 10) for i, t in enumerate(trials)]
    if len(broken) == 3:
        with pytest.raises(StopIteration) as stop:
            run.send(records)
        assert stop.value.value["status"] == "failed"
        assert len(stop.value.value["failed"]) == 3
        return
    trials = run.send(records)
    assert trials[0].config.num_layers == 3
    bad = [fake(trials[0], 0.5, 0.9), {"key": trials[1].key, "status": "failed"}]
    with pytest.raises(StopIteration) as stop:
        run.send(bad)
    fold = stop.value.value
    assert (fold["status"], fold["test"], len(fold["failed"])) == ("failed", None, 2)
    record = summarize(plan, [fold], [], {})
    assert (record["mean"], record["folds_done"], record["folds_failed"]) == (None, 0, 1)


def test_a_failed_trial_has_no_score():
    assert validation_score({"status": "failed"}) is None


def test_the_number_of_trials_is_known_beforehand(small_plan):
    assert small_plan(repeats=2).trials_per_fold == 5
    assert small_plan(repeats=2, search="halving").trials_per_fold == 3 + 2


def test_an_evaluation_keeps_its_key_when_it_grows_by_folds(small_plan):
    assert small_plan(folds=1).key == small_plan(folds=3).key
    assert small_plan(repeats=1).key != small_plan(repeats=2).key
    assert small_plan(num_layers=[1, 2]).key != small_plan().key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": 11}, "folds is 11: it must be from 1 to 10"),
        ({"repeats": -1}, "repeats is -1"),
        ({"search": "luck"}, "search is 'luck'"),
        ({"search": "random"}, "needs --trials"),
        ({"trials": 0}, "trials is 0"),
    ],
)
def test_bad_plans_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        make_plan("MUTAG", SearchSpace.from_values({"num_layers": [1]}), **changes)


@pytest.mark.parametrize(
    ("key", "values"), [("splits", ["published", "drawn"]), ("metric", ["accuracy", "roc_auc"])]
)
def test_configurations_are_compared_by_one_measure_on_one_split(key, values):
    with pytest.raises(ConfigError, match=f"{key} is searched"):
        SearchSpace.from_values({key: values})


@pytest.mark.parametrize("key", ["model", "seed", "fold", "dataset"])
def test_what_the_protocol_decides_cannot_be_set(key):
    with pytest.raises(ConfigError, match=f"{key} is not searched"):
        SearchSpace.from_values({"num_layers": [1]}).fixed({key: 1})


@pytest.mark.parametrize(
    ("metric", "message"), [("roc", "metric is 'roc'"), ("roc_auc", "there are 3")]
)
def test_the_metric_must_fit_the_data(metric, message, monkeypatch):
    graphs = dataclasses.replace(load_graphs("MUTAG"), class_names=("a", "b", "c"))
    monkeypatch.setattr("kergnn.evaluation.protocol.load_graphs", lambda *_: graphs)
    with pytest.raises(ValueError, match=message):
        make_plan("MUTAG", SearchSpace.from_values({"metric": metric}))


def test_selection_follows_the_metric_then_the_smaller_loss():
    def record(**figures):
        return {"status": "done", "metric": "macro_f1", "validation": figures}

    better = validation_score(record(accuracy=0.5, macro_f1=0.9, loss=0.4))
    assert better > validation_score(record(accuracy=0.9, macro_f1=0.5, loss=0.1))
    assert better > validation_score(record(accuracy=0.5, macro_f1=0.9, loss=0.5))
    assert validation_score(record(macro_f1=0.9, loss=float("nan"))) is None


def test_the_result_is_the_mean_and_the_deviation_of_the_population(small_plan):
    folds = [
        {"fold": i, "status": "done", "test": {"accuracy": a}, "failed": {}, "assessment": []}
        for i, a in enumerate((0.5, 0.8, 0.8))
    ]
    record = summarize(small_plan(), folds, [], {})
    assert record["mean"] == pytest.approx(0.7)
    assert record["std"] == pytest.approx((0.06 / 3) ** 0.5)


def test_runs_that_predict_one_class_are_counted(small_plan):
    done = {"kind": "assessment", "status": "done", "validation": {}}

    def trials(*predicted, true=(0, 0, 1)):
        return [{**done, "predictions": {"predicted": p, "true": true}} for p in predicted]

    def counted(*records):
        return summarize(small_plan(), [], [*records], {})["constant_runs"]

    assert counted(*trials((1, 1, 1), (0, 1, 1), (0, 0, 0))) == 2
    assert counted(*trials((2, 2, 2), (0, 2, 2), true=(0, 1, 2))) == 1
    assert counted(*trials((0, 1, 1))) == 0
    assert counted(*trials((0, 0, 0), true=(0, 0, 0))) == 0
    assert counted({"kind": "selection", "status": "failed"}) == 0


def test_an_evaluation_of_other_splits_is_another_one(small_plan):
    plan = small_plan(folds=1)
    assert dataclasses.replace(plan, splits="others").key != plan.key


def test_the_figures_are_those_of_the_selected_epoch_and_its_weights_are_tested(
    small_plan, monkeypatch
):
    """Epochs count as worse and worse: the first is selected, and tested."""
    plan = small_plan(folds=1, epochs=4)
    trial = plan.folds[0].assessment(plan.configs[0], seed=1)
    one = run_trial(dataclasses.replace(trial, config=trial.config.replace({"epochs": 1})))
    record_epoch = Trainer._record
    monkeypatch.setattr(
        Trainer,
        "_record",
        lambda self, row: record_epoch(self, {**row, "validation_accuracy": 1 / row["epoch"]}),
    )
    record = run_trial(trial)
    assert (record["best_epoch"], record["epochs"]) == (1, 4)
    assert record["validation"]["loss"] == one["validation"]["loss"]
    assert record["predictions"] == one["predictions"]


def test_a_training_that_ends_in_nan_has_failed(small_plan):
    plan = small_plan(folds=1, num_layers=1, epochs=1)
    config = plan.configs[0].replace({"model": "gin", "learning_rate": 1e30, "batch_size": 512})
    with pytest.raises(FloatingPointError, match="diverged"):
        run_trial(plan.folds[0].trial(config, seed=0))


def test_records_hold_no_path_and_say_that_a_set_is_ones_own(tmp_path):
    lines = ['{"nodes": 3, "edges": [[0, 1], [1, 2]], "label": "path"}'] * 10
    lines += ['{"nodes": 3, "edges": [[0, 1], [1, 2], [0, 2]], "label": "ring"}'] * 10
    (tmp_path / "NCI1.jsonl").write_text("\n".join(lines))
    space = SearchSpace.from_values({"epochs": 1, "hidden_channels": 4})
    plan = make_plan(str(tmp_path / "NCI1.jsonl"), space, folds=1, repeats=1)
    assert plan.dataset == "NCI1 (own)"
    trial = plan.folds[0].trial(plan.configs[0], seed=0)
    failed = failed_record(trial, 1, f"Traceback\n{plan.configs[0].dataset}: oh")
    for record in (failed, run_trial(trial)):
        assert str(tmp_path) not in json.dumps(record)
        assert record["dataset"] == record["config"]["dataset"] == "NCI1 (own)"
    assert failed["error"] == "NCI1 (own): oh"


def test_changed_data_are_read_again_and_other_data_refused(tmp_path):
    path = tmp_path / "mine.jsonl"
    lines = ['{"nodes": 3, "edges": [[0, 1]], "label": "a"}'] * 10
    lines += ['{"nodes": 2, "edges": [[0, 1]], "label": "b"}'] * 10
    space = SearchSpace.from_values({"epochs": 1, "hidden_channels": 4})
    plans = []
    for more in ([], lines[:1]):
        path.write_text("\n".join([*lines, *more]))
        plans.append(make_plan(str(path), space, folds=1))
        assert run_trial(plans[-1].folds[0].trial(plans[-1].configs[0], 0))["status"] == "done"
    with pytest.raises(DataError, match="have changed"):
        run_trial(plans[0].folds[0].trial(plans[0].configs[0], 0))


def test_the_width_of_the_model_does_not_depend_on_the_test_part(small_plan):
    assert small_plan(features="onehot-degree").configs[0].input_channels == 64
    assert small_plan(features="wl").configs[0].input_channels == 64
    assert small_plan(features="binned-degree").configs[0].input_channels == 0


def test_without_repeats_a_configuration_is_selected_and_nothing_assessed(small_plan):
    plan = small_plan(repeats=0)
    run = run_fold(plan.folds[0], exhaustive(plan.configs), repeats=0, seed=0)
    trials = next(run)
    records = [
        {**fake(t, i / 10), "kind": "selection", "config": t.config.to_dict(), "split": "s"}
        for i, t in enumerate(trials)
    ]
    with pytest.raises(StopIteration) as stop:
        run.send(records)
    fold = stop.value.value
    assert (fold["status"], fold["assessment"]) == ("selected", [])
    assert fold["config"]["num_layers"] == 3
    record = summarize(plan, [fold], records, {})
    assert [row["scores"] for row in record["validation"]] == [{"s": 0.0}, {"s": 0.1}, {"s": 0.2}]
    assert (record["mean"], record["folds_failed"]) == (None, 0)
