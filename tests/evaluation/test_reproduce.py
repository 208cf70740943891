import math

import pytest

from kergnn import versions
from kergnn.config import ConfigError
from kergnn.data import DataError
from kergnn.evaluation import ResultStore, SearchSpace, evaluate, make_executor, make_plan
from kergnn.evaluation.reproduce import reproduce


@pytest.fixture
def store(tmp_path, small_plan):
    """Two folds of MUTAG, two runs each."""
    store = ResultStore(tmp_path / "store")
    evaluate(small_plan(num_layers=1), store, make_executor("serial"))
    return store


def files(store):
    return {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}


def edit_run(store, fold=0, run=0, **changes):
    """Change a stored trial; its checksum fits again."""
    (evaluation,) = store.evaluations()
    key = evaluation["folds"][fold]["assessment"][run]
    store.add_trial({**store.trial("MUTAG", key), **changes})


def stored_run(store, fold=0, run=0):
    (evaluation,) = store.evaluations()
    return store.trial("MUTAG", evaluation["folds"][fold]["assessment"][run])


def test_a_fold_comes_out_again_and_the_store_stays_as_it_is(store):
    before = files(store)
    found = reproduce(store, "mutag", fold=1)
    assert found.equal
    assert found.changed == ()
    figures = ["test accuracy", "test figures", "kept epoch", "figures by epoch"]
    figures += ["validation figures", "true classes", "predicted classes", "probabilities"]
    assert [(row.run, row.figure) for row in found.rows] == [
        *((run, figure) for run in (0, 1) for figure in figures),
        *((None, figure) for figure in ("test accuracy", "test figures", "test accuracies")),
    ]
    assert files(store) == before


def test_it_trains_instead_of_reading_what_is_stored(store):
    predictions = stored_run(store)["predictions"]
    predictions["predicted"][3] = 1 - predictions["predicted"][3]
    predictions["probabilities"][5][0] += 1e-6
    edit_run(store, predictions=predictions)
    found = reproduce(store, "MUTAG")
    assert [(row.run, row.figure) for row in found.rows if not row.equal] == [
        (0, "predicted classes"),
        (0, "probabilities"),
    ]
    assert (found.rows[6].stored, found.rows[6].again) == ("19", "18 the same")
    assert found.rows[7].again == "18 the same"
    assert reproduce(store, "MUTAG", run=1).equal


def test_the_accuracy_and_the_epoch_are_compared(store):
    stored = stored_run(store)
    edit_run(store, test={**stored["test"], "accuracy": 0.5001}, best_epoch=9)
    found = reproduce(store, "MUTAG", run=0)
    assert [row.figure for row in found.rows if not row.equal] == [
        "test accuracy",
        "test figures",
        "kept epoch",
    ]


def test_everything_that_is_stored_of_a_run_is_compared(store):
    stored = stored_run(store)
    stored["test"]["macro_f1"] = 0.123
    stored["history"]["train_loss"][0] += 1
    stored["validation"]["loss"] += 1
    stored["predictions"]["true"][0] = 1 - stored["predictions"]["true"][0]
    edit_run(store, **stored)
    found = reproduce(store, "MUTAG", run=0)
    assert [row.figure for row in found.rows if not row.equal] == [
        "test figures",
        "figures by epoch",
        "validation figures",
        "true classes",
    ]


def test_the_last_bit_of_a_figure_that_follows_from_the_predictions_is_none_of_theirs(store):
    stored = stored_run(store)
    figure = stored["test"]["roc_auc"]
    edit_run(store, test={**stored["test"], "roc_auc": math.nextafter(figure, 1)})
    assert reproduce(store, "MUTAG", run=0).equal
    edit_run(store, test={**stored["test"], "roc_auc": figure + 1e-14})
    assert not reproduce(store, "MUTAG", run=0).equal
    edit_run(store, test={**stored["test"], "another": 1.0})
    assert not reproduce(store, "MUTAG", run=0).equal


def test_the_accuracy_of_the_fold_is_that_of_the_evaluation(store):
    (evaluation,) = store.evaluations()
    evaluation["folds"][0]["test"]["accuracy"] += 1e-9
    evaluation["folds"][0]["accuracies"][1] += 1e-9
    store.add_evaluation(evaluation)
    assert [(row.run, row.figure) for row in reproduce(store, "MUTAG").rows if not row.equal] == [
        (None, "test accuracy"),
        (None, "test figures"),
        (None, "test accuracies"),
    ]


def test_what_changed_since_is_told(store, monkeypatch):
    stored = stored_run(store)
    edit_run(store, versions={**stored["versions"], "torch": "1.0"})
    monkeypatch.setattr(versions, "source_hash", lambda: "edited")
    found = reproduce(store, "MUTAG", run=0, threads=2)
    torch = f"torch was 1.0 and is {stored['versions']['torch']}"
    source = f"source was {stored['versions']['source']} and is edited"
    assert found.changed == (torch, source, "threads was 1 and is 2")


def test_other_code_of_a_library_is_told(store):
    measured = stored_run(store)["measured"]
    edit_run(store, measured={**measured, "library_code": {"torch": "none", "openblas": "other"}})
    (told,) = reproduce(store, "MUTAG", run=0).changed
    assert told.startswith("code of libraries was torch none, openblas other and is torch ")


def test_an_older_record_does_not_tell_everything(store):
    stored = stored_run(store)
    del stored["versions"]["source"]
    del stored["measured"]["processor"], stored["measured"]["library_code"]
    edit_run(store, **stored)
    found = reproduce(store, "MUTAG", run=0)
    (told,) = found.changed
    code = ", ".join(f"{library} {name}" for library, name in versions.library_code().items())
    assert told == (
        f"the record does not tell its source ({versions.source_hash()} here) and processor "
        f"({versions.processor()} here) and code of libraries ({code} here)"
    )
    assert found.equal


def test_the_source_is_in_the_record_but_not_in_the_key(store, small_plan, monkeypatch):
    monkeypatch.setattr(versions, "source_hash", lambda: "edited")
    plan = small_plan(num_layers=1)
    key = plan.folds[0].assessment(plan.configs[0], seed=1).key
    assert store.trial("MUTAG", key)["versions"]["source"] != "edited"


def test_a_kernel_computes_its_gram_matrix_again(tmp_path):
    store = ResultStore(tmp_path)
    space = SearchSpace.from_values({"options": {"num_iterations": 1}})
    plan = make_plan("MUTAG", space, model="wl", folds=1, repeats=2)
    evaluate(plan, store, make_executor("serial"))
    for path in store.kernels.rglob("*.safetensors"):
        path.write_bytes(b"damaged")
    before = files(store)
    found = reproduce(store, "MUTAG", model="wl")
    assert found.equal
    assert "kept epoch" not in {row.figure for row in found.rows}
    assert files(store) == before


def test_graphs_of_ones_own_are_found_by_their_path(tmp_path, own_graphs):
    path, store = own_graphs(tmp_path / "mine.jsonl"), ResultStore(tmp_path / "store")
    space = SearchSpace.from_values({"hidden_channels": 4, "epochs": 2})
    evaluate(make_plan(str(path), space, folds=1, repeats=1), store, make_executor("serial"))
    found = reproduce(store, str(path))
    assert (found.dataset, found.equal) == ("mine (own)", True)
    own_graphs(path, count=40)
    with pytest.raises(DataError, match=r"mine\.jsonl: not the data of the stored evaluation"):
        reproduce(store, str(path))
    other = own_graphs(tmp_path / "other.jsonl")
    with pytest.raises(ConfigError, match=r"no evaluation of kergnn on other \(own\)"):
        reproduce(store, str(other))


def test_what_is_not_there_is_named(tmp_path, store):
    for options, message in (
        ({"dataset": "NCI1"}, r"dataset is 'NCI1': .*store has kergnn on MUTAG"),
        ({"model": "gin"}, r"dataset is 'MUTAG': .*store has gin on no set"),
        ({"model": "nothing"}, "model is 'nothing'"),
        ({"fold": 2}, "fold is 2: .* kergnn on MUTAG has the folds 0, 1$"),
        ({"run": 2}, "run is 2: fold 0 has runs 0 to 1"),
        ({"store": ResultStore(tmp_path / "nowhere")}, "nowhere: no such folder"),
    ):
        with pytest.raises(ConfigError, match=message):
            reproduce(**{"store": store, "dataset": "MUTAG", **options})


def test_a_fold_without_a_result_cannot_be_compared(store):
    (evaluation,) = store.evaluations()
    evaluation["folds"][1]["status"] = "failed"
    store.add_evaluation(evaluation)
    with pytest.raises(ConfigError, match=r"fold is 1: .* it is 'failed' and has no test"):
        reproduce(store, "MUTAG", fold=1)


def test_a_trial_that_is_not_what_its_name_says_is_refused(store):
    stored = stored_run(store)
    edit_run(store, config={**stored["config"], "learning_rate": 0.5})
    with pytest.raises(DataError, match="its settings are not those that it is named by"):
        reproduce(store, "MUTAG")
    stored_path = store.folder / "trials" / "MUTAG" / f"{stored['key']}.json"
    stored_path.unlink()
    with pytest.raises(DataError, match=f"trial {stored['key']} of fold 0 cannot be read"):
        reproduce(store, "MUTAG")
