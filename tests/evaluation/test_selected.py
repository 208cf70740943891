import pytest

from kergnn.config import ConfigError, RunConfig, read_toml
from kergnn.evaluation import ResultStore, evaluate, make_executor
from kergnn.evaluation.results import Result, stored_results
from kergnn.evaluation.selected import selected_config, shipped_config, write_selected


def record(*choices, dataset="MUTAG", validation=None, **settings):
    """An evaluation whose folds selected these numbers of layers."""
    folds = [
        {"fold": i, "config": RunConfig(dataset, fold=i, num_layers=n, **settings).to_dict()}
        for i, n in enumerate(choices)
    ]
    scores = [
        {"values": {"num_layers": n}, "scores": {"a": score, "b": score}}
        for n, score in (validation or {}).items()
    ]
    return {
        "dataset": dataset,
        "searched": {"num_layers": [1, 2, 3]},
        "num_configs": 3,
        "folds": folds,
        **({} if validation is None else {"validation": scores}),
    }


def result(evaluation, model="kergnn", folds=10, **changes):
    name = evaluation["dataset"]
    return Result("graph", name, model, 0.861, folds=folds, record=evaluation, **changes)


@pytest.mark.parametrize(
    ("choices", "validation", "layers"),
    [
        ((1, 2, 2, 3), {1: 0.9, 2: 0.7, 3: 0.8}, 2),
        ((3, 1, 1, 3, 2), {1: 0.8, 2: 0.9, 3: 0.7}, 1),
        ((3, 1, 1, 3, 2), {1: 0.7, 2: 0.9, 3: 0.8}, 3),
        ((3, 1, 1, 3, 2), None, 3),
    ],
)
def test_most_folds_decide_then_validation_then_the_first(choices, validation, layers):
    config, count = selected_config(record(*choices, validation=validation))
    assert (config.num_layers, count) == (layers, 2)


def test_a_written_file_is_the_configuration_of_its_folds(tmp_path, small_plan):
    store = ResultStore(tmp_path / "store")
    plan = small_plan(max_nodes="none", num_layers=1)
    evaluate(plan, store, make_executor("serial"))
    (stored,) = stored_results(store)
    (path,) = write_selected([result(stored.record)], tmp_path, "kergnn")
    assert path == tmp_path / "mutag.toml"
    read = RunConfig().replace(read_toml(path))
    for fold in stored.record["folds"]:
        assert read.replace({"fold": fold["fold"]}).to_dict() == fold["config"]
    text = path.read_text()
    assert "what 2 of 10 folds selected, of 1 configuration." in text
    assert "mean test accuracy is 86.1 %" in text
    assert "not an independent estimate" in text
    assert 'max_nodes = "none"' in text
    assert "seed" not in text
    assert "patience" not in text


def test_only_whole_evaluations_of_the_wanted_models_are_written(tmp_path):
    whole = result(record(*[2] * 10, dataset="IMDB-BINARY"))
    own = result(record(*[2] * 10, dataset="mine (own)"))
    gin = result(record(*[2] * 10, model="gin", options=(("eps", 0.5),)), model="gin")
    results = [
        whole,
        own,
        gin,
        result(record(*[2] * 9), folds=9),
        result(record(*[2] * 10), published=True),
    ]
    assert [path.name for path in write_selected(results, tmp_path, "kergnn")] == [
        "imdb-binary.toml",
        "mine__own_.toml",
    ]
    every = write_selected(results, tmp_path, None)
    assert [path.name for path in every][2:] == ["mutag-gin.toml"]
    assert read_toml(every[0]) == {"dataset": "IMDB-BINARY"}
    assert read_toml(every[1]) == {}  # no name that could be trained on
    assert read_toml(every[2]) == {"model": "gin", "options.eps": 0.5}


def test_what_is_shipped_can_be_read_and_says_what_it_is_worth():
    for path in shipped_config("MUTAG", "kergnn").parent.glob("*.toml"):
        config = RunConfig().replace(read_toml(path))
        assert path == shipped_config(config.dataset, config.model)
        assert "not an independent estimate" in path.read_text()
        assert (config.fold, config.seed) == (0, 0)


def test_data_of_ones_own_have_no_shipped_file_whatever_they_are_called(tmp_path, monkeypatch):
    assert shipped_config("MUTAG", "kergnn").is_file()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MUTAG").mkdir()
    with pytest.raises(ConfigError, match="is shipped for kergnn on MUTAG"):
        shipped_config("MUTAG", "kergnn")


def test_a_set_without_a_shipped_file_is_named():
    for dataset, model in (("nowhere", "kergnn"), ("../mutag", "kergnn"), ("MUTAG", "gin")):
        with pytest.raises(ConfigError, match=f"shipped for {model} on {dataset}; there are those"):
            shipped_config(dataset, model)
