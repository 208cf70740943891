"""What a trial leaves for the next one changes nothing but the time it takes."""

import pytest

from kergnn import preparation
from kergnn.config import RunConfig
from kergnn.data import get_split, load_graphs
from kergnn.evaluation import SearchSpace, fold, make_plan, run_trial


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(fold, "_last", [])


def trials():
    """Return trials of which neighbours differ in few things, at best in one."""
    values = {"hidden_channels": 4, "num_layers": 1, "epochs": 1, "dropout": 0.0}
    found = []
    for model, more in [
        ("gin", {"features": "label"}),
        ("kergnn", {"features": "label"}),
        ("kergnn", {"features": "label+wl"}),
        ("kergnn", {"features": "label+wl", "max_nodes": 3}),
    ]:
        plan = make_plan("MUTAG", SearchSpace.from_values(values | more), model, folds=2, repeats=1)
        for index, refit in [(0, False), (1, False), (1, True)]:
            found.append(plan.folds[index].assessment(plan.configs[0], seed=1, refit=refit))
    return sorted(found, key=lambda trial: (trial.split, trial.refit))


def test_a_trial_does_not_depend_on_the_one_before(monkeypatch):
    records = [run_trial(trial) for trial in trials()]
    for trial, record in zip(trials(), records, strict=True):
        monkeypatch.setattr(fold, "_last", [])
        alone = run_trial(trial)
        assert alone["predictions"] == record["predictions"]
        assert alone["history"] == record["history"]
    assert len({str(record["history"]) for record in records}) == len(records)


def test_a_fold_is_prepared_once_for_all_trials_that_need_the_same():
    graphs, split = load_graphs("MUTAG"), get_split(load_graphs("MUTAG"), 0)

    def prepare(of=split, **values):
        config = RunConfig(features="label").replace(values)
        return fold.prepare_fold(config, graphs.fingerprint, graphs, of)

    assert prepare() is prepare(num_layers=3, features="degree")
    for other in (
        {"of": get_split(graphs, 1)},
        {"of": split.without_validation()},
        {"max_nodes": 3},
        {"num_hops": 2},
        {"model": "gin"},
    ):
        assert prepare(**other) is not prepare(), other


def test_features_are_made_again_for_another_recipe_only(monkeypatch):
    graphs, split = load_graphs("MUTAG"), get_split(load_graphs("MUTAG"), 0)
    made, make = [], preparation.make_batches
    for module in (preparation, fold):
        monkeypatch.setattr(module, "make_batches", lambda *a, **k: made.append(a) or make(*a, **k))
    for recipe, count in [("label", 2), ("label", 2), ("degree", 4), ("label", 6)]:
        config = RunConfig(features=recipe, hidden_channels=4, epochs=1)
        mine = fold.prepare_fold(config, graphs.fingerprint, graphs, split)
        trainer, features = preparation.prepare_trainer(config, mine.development)
        assert mine.with_test(config, features).x.size(1) == trainer.batches.x.size(1)
        assert features.recipe == recipe
        assert len(made) == count
