"""What a trial leaves for the next one changes nothing but the time it takes."""

import dataclasses

import pytest
import torch

from kergnn import preparation
from kergnn.config import RunConfig
from kergnn.data import DataError, get_split, load_graphs
from kergnn.evaluation import SearchSpace, fold, make_plan, run_trial
from kergnn.evaluation.trial import Trial


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(fold, "_last", None)


@pytest.fixture(scope="module")
def mutag():
    graphs = load_graphs("MUTAG")
    return graphs, get_split(graphs, 0)


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
        monkeypatch.setattr(fold, "_last", None)
        alone = run_trial(trial)
        assert alone["predictions"] == record["predictions"]
        assert alone["history"] == record["history"]
    assert len({str(record["history"]) for record in records}) == len(records)


def test_all_that_decides_a_fold_is_in_its_key():
    config = RunConfig(features="label", num_hops=1, max_nodes=10, device="cpu")
    trial = Trial(config, "MUTAG", "data", "published-0", "split")

    def key(**values):
        return dataclasses.replace(trial, config=config.replace(values)).fold_key

    assert key(num_layers=3, kernel="drw", seed=7, epochs=2) == trial.fold_key
    others = [
        dataclasses.replace(trial, fingerprint="other").fold_key,
        dataclasses.replace(trial, split_hash="other").fold_key,
        dataclasses.replace(trial, refit=True).fold_key,
        key(features="degree"),
        key(num_hops=2),
        key(max_nodes=3),
        key(device="cuda"),
        key(model="gin"),
        key(model="ecc"),
    ]
    assert len({trial.fold_key, *others}) == 1 + len(others)


def test_a_fold_is_kept_until_another_is_asked_for(mutag):
    config = RunConfig(features="label")
    first = fold.prepare_fold("a", config, *mutag)
    fold.forget_other_folds("a")
    assert fold.prepare_fold("a", config, *mutag) is first
    assert fold.prepare_fold("b", config, *mutag) is not first
    assert fold.prepare_fold("a", config, *mutag) is not first
    fold.forget_other_folds("b")
    assert fold._last is None


def test_features_are_made_once_for_a_recipe(mutag, monkeypatch):
    made, make = [], preparation.make_batches
    for module in (preparation, fold):
        monkeypatch.setattr(module, "make_batches", lambda *a: made.append(a) or make(*a))
    config = RunConfig(features="label", hidden_channels=4, epochs=1)
    mine = fold.prepare_fold("a", config, *mutag)
    for recipe, count in [("label", 2), ("label", 2), ("degree", 3), ("label", 4)]:
        own = config.replace({"features": recipe})
        _, features = preparation.prepare_trainer(own, mine.development)
        assert features.recipe == recipe
        assert mine.with_test(features).x.size(0) == mutag[0].num_nodes
        assert len(made) == count


def test_a_recipe_that_fails_does_no_harm_to_another(mutag):
    config = RunConfig(features="label", hidden_channels=4, epochs=1)
    development = fold.prepare_fold("a", config, *mutag).development
    first = preparation.prepare_trainer(config, development)[0].batches.x
    with pytest.raises(DataError):
        preparation.prepare_trainer(config.replace({"features": "attr"}), development)
    assert torch.equal(preparation.prepare_trainer(config, development)[0].batches.x, first)


def test_a_kind_of_edges_that_only_the_test_part_has_is_none(mutag):
    graphs, split = mutag
    bonds = graphs.edge_values["label"].copy()
    of_test = torch.isin(graphs.graph_of[graphs.edge_index[0]], split.test).numpy()
    bonds[of_test] = bonds.max() + 1
    other = dataclasses.replace(graphs, edge_values={"label": bonds})
    config = RunConfig(model="ecc", features="label", hidden_channels=4, epochs=1)
    mine = fold.prepare_fold("a", config, other, split)
    _, features = preparation.prepare_trainer(config, mine.development)
    with pytest.warns(UserWarning, match="edges with label '4', which the model does not know"):
        batches = mine.with_test(features)
    assert not batches(split.test).edge_attr.any()
