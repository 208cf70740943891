import csv
import dataclasses
import io

import pytest
import torch

from kergnn.cli import main
from kergnn.config import RunConfig
from kergnn.data import DataError, get_split, load_graphs
from kergnn.evaluation import (
    ResultStore,
    SearchSpace,
    evaluate,
    make_executor,
    make_plan,
    run_trial,
)
from kergnn.evaluation.reproduce import reproduce, stored_trial
from kergnn.evaluation.results import stored_results
from kergnn.evaluation.selected import selected_config
from kergnn.evaluation.table import format_table
from kergnn.evaluation.trial import train
from kergnn.prediction import predict_probabilities
from kergnn.preparation import ego_graphs, find_split, hide_test, make_batches


def test_without_its_validation_part_a_split_trains_on_all_but_the_test_part():
    split = get_split(load_graphs("MUTAG"), 2)
    joined = split.without_validation()
    assert joined.train.tolist() == sorted([*split.train.tolist(), *split.validation.tolist()])
    assert len(joined.validation) == 0
    assert torch.equal(joined.test, split.test)


def test_a_refit_is_a_training_on_both_parts_to_the_last_epoch(small_plan):
    plan = small_plan(folds=1, num_layers=1, epochs=3)
    trial = plan.folds[0].assessment(plan.configs[0], seed=1, refit=True)
    assert trial.config.keep_epoch == "last"
    record = run_trial(trial)
    assert (record["best_epoch"], record["epochs"], record["validation"]) == (3, 3, {})

    graphs = load_graphs("MUTAG")
    split = get_split(graphs, 0).without_validation()
    ego = ego_graphs(trial.config, graphs)
    trainer, features = train(trial.config, hide_test(graphs, ego, split))
    assert len(trainer.train_part) == graphs.num_graphs - len(split.test)
    probabilities = predict_probabilities(
        trainer.model, make_batches(trial.config, graphs, features, ego), split.test
    )
    assert torch.allclose(
        torch.tensor(record["predictions"]["probabilities"]), probabilities, atol=1e-5
    )


def test_a_refit_trains_on_the_classes_of_the_validation_part(small_plan, monkeypatch):
    plan = small_plan(folds=1, num_layers=1)
    graphs, split = load_graphs("MUTAG"), get_split(load_graphs("MUTAG"), 0)
    y = graphs.y.clone()
    y[split.validation] = 1 - y[split.validation]
    losses = {}
    for name, data in (("real", graphs), ("other", dataclasses.replace(graphs, y=y))):
        monkeypatch.setattr("kergnn.evaluation.trial._load", lambda *_, data=data: data)
        monkeypatch.setattr("kergnn.evaluation.trial.find_split", lambda *_: split)
        for refit in (False, True):
            trial = plan.folds[0].assessment(plan.configs[0], seed=1, refit=refit)
            trial = dataclasses.replace(trial, fingerprint=data.fingerprint)
            losses[name, refit] = run_trial(trial)["history"]["train_loss"]
    assert losses["real", False] == losses["other", False]
    assert losses["real", True] != losses["other", True]


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("kergnn", {"num_layers": [1, 2], "epochs": 2, "hidden_channels": 4}),
        ("gckn", {"num_layers": [1, 2], "epochs": 2, "hidden_channels": 4}),
        ("wl", {"options.C": [0.1, 10.0]}),
        ("gntk", {"options.C": [0.1, 10.0]}),
    ],
)
def test_an_evaluation_that_refits_shares_its_selection_and_is_another_one(tmp_path, model, values):
    space = SearchSpace.from_values(values)
    plans = [make_plan("MUTAG", space, model, folds=1, repeats=1, refit=r) for r in (False, True)]
    assert plans[0].key != plans[1].key
    store, executor = ResultStore(tmp_path), make_executor("serial")
    record, refitted = (evaluate(plan, store, executor) for plan in plans)
    assert "refit" not in record
    assert refitted["refit"]
    (fold,), (other,) = record["folds"], refitted["folds"]
    assert fold["selection"] == other["selection"]
    assert fold["assessment"] != other["assessment"]
    stored = store.trial("MUTAG", other["assessment"][0])
    assert stored["refit"]
    assert stored_trial(stored, "MUTAG").refit
    assert reproduce(store, "MUTAG", model).equal
    texts = [format_table([result]) for result in stored_results(store, every=True)]
    assert ["refitted" in text for text in texts] == [True, False]


def test_the_stored_configuration_is_the_one_that_was_assessed(tmp_path, small_plan):
    plan = dataclasses.replace(small_plan(num_layers=1), refit=True)
    store = ResultStore(tmp_path)
    record = evaluate(plan, store, make_executor("serial"))
    assert {fold["config"]["keep_epoch"] for fold in record["folds"]} == {"last"}
    assert selected_config(record)[0].keep_epoch == "last"


def test_a_comparison_tells_if_only_one_of_two_refits(tmp_path, small_plan):
    store, executor = ResultStore(tmp_path), make_executor("serial")
    evaluate(dataclasses.replace(small_plan(num_layers=1), refit=True), store, executor)
    space = SearchSpace.from_values({"hidden_channels": 4, "epochs": 2, "num_layers": 1})
    evaluate(make_plan("MUTAG", space, "gin", folds=2, repeats=1), store, executor)
    results = stored_results(store)
    assert format_table(results, "markdown").count("only one of the two refits") == 2
    rows = list(csv.DictReader(io.StringIO(format_table(results, "csv"))))
    assert {row["model"]: row["refit"] for row in rows} == {"kergnn": "yes", "gin": "no"}


def test_a_split_without_a_validation_part_is_refused(monkeypatch):
    graphs = load_graphs("MUTAG")
    empty = get_split(graphs, 0).without_validation()
    monkeypatch.setattr("kergnn.preparation.get_split", lambda *_: empty)
    with pytest.raises(DataError, match="has no validation part"):
        find_split(RunConfig(), graphs, None)


def test_there_is_nothing_to_refit_where_nothing_is_assessed(capsys):
    assert main(["evaluate", "MUTAG", "--select-only", "--refit"]) == 2
    assert "nothing to --refit" in capsys.readouterr().err
