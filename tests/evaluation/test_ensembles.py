import pytest

from kergnn.cli import main
from kergnn.evaluation import ResultStore
from kergnn.evaluation.ensembles import ensemble_accuracy, ensemble_results
from kergnn.evaluation.results import stored_results, summarized

# Two graphs of class 0 and one of class 1. Alone each run has two of three; together they have all:
# the third is unsure where it errs, and sure where the others err.
RUNS = (
    [[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]],
    [[0.4, 0.6], [0.9, 0.1], [0.1, 0.9]],
    [[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]],
)


def run(key, probabilities):
    predicted = {"graph": [0, 1, 2], "true": [0, 0, 1], "probabilities": probabilities}
    return {"format": 1, "key": key, "dataset": "NCI1", "status": "done", "predictions": predicted}


def evaluation(folds, model="kergnn", **changes):
    return {
        "format": 1,
        "key": model * 4,
        "dataset": "NCI1",
        "fingerprint": "abc",
        "task": "graph",
        "model": model,
        "search": "grid",
        "searched": {},
        "num_configs": 1,
        "repeats": 3,
        "mean": 2 / 3,
        "std": 0.0,
        "folds_done": len(folds),
        "folds_failed": 0,
        "trials_failed": 0,
        "trials_out_of_resources": 0,
        "folds": [
            {
                "fold": i,
                "split_hash": str(i),
                "status": "done",
                "test": {"accuracy": 2 / 3},
                "config": {"epochs": 1, "features": "label"},
                "assessment": keys,
                "failed": {},
            }
            for i, keys in enumerate(folds)
        ],
        "measured": {"seconds_per_epoch": 1.0, "seconds_of_all_trainings": 1.0, "finished": ""},
        **changes,
    }


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path)
    for i, probabilities in enumerate(RUNS):
        store.add_trial(run(f"good{i}", probabilities))
        store.add_trial(run(f"same{i}", RUNS[0]))
    return store


FOLDS = [["good0", "good1", "good2"], ["same0", "same1", "same2"]]


def test_runs_vote_with_their_probabilities():
    assert ensemble_accuracy([run("", p) for p in RUNS]) == 1
    assert ensemble_accuracy([run("", RUNS[0])] * 3) == pytest.approx(2 / 3)


def test_the_ensemble_of_an_evaluation_has_the_mean_and_deviation_of_its_folds(store):
    store.add_evaluation(evaluation(FOLDS))
    (found,) = ensemble_results(stored_results(store), store)
    assert (found.model, found.dataset, found.folds) == ("kergnn, 3 networks", "NCI1", 2)
    assert (found.mean, found.std) == (pytest.approx(5 / 6), pytest.approx(1 / 6))


def test_what_is_no_ensemble_has_no_row(store):
    """One run a fold; a kernel machine, whose runs are alike; the best of several models."""
    store.add_evaluation(evaluation(FOLDS, repeats=1))
    store.add_evaluation(evaluation(FOLDS, "wl", measured={"seconds_of_all_trainings": 1.0}))
    store.add_evaluation(evaluation(FOLDS * 5, "gin"))
    results = stored_results(store)
    assert [r.model for r in ensemble_results(results, store)] == ["gin, 3 networks"]
    summary = summarized(results)
    assert "best competitor" in {r.model for r in summary}
    assert ensemble_results(summary, store) == []


def test_a_run_that_the_store_lacks_is_told(store, capsys):
    store.add_evaluation(evaluation([*FOLDS, ["good0", "good1", "gone"]]))
    (found,) = ensemble_results(stored_results(store), store)
    assert (found.mean, found.std, found.note) == (None, None, "trials missing")
    assert main(["table", "--store", str(store.folder), "--no-published", "--ensembles"]) == 0
    assert "trials missing" in capsys.readouterr().out


def test_the_table_shows_ensembles_on_demand(store, capsys):
    store.add_evaluation(evaluation(FOLDS))
    options = ["--store", str(store.folder), "--no-published"]
    assert main(["table", *options]) == 0
    assert "networks" not in capsys.readouterr().out
    for more in ([], ["--summary"], ["--format", "csv"]):
        assert main(["table", *options, "--ensembles", *more]) == 0
        assert "83.3" in capsys.readouterr().out
