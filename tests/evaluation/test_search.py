import pytest

from kergnn.config import ConfigError, RunConfig
from kergnn.evaluation import SearchSpace, default_grid, default_space
from kergnn.evaluation.search import Range, exhaustive, halving

BASE = RunConfig()


def space(**values):
    return SearchSpace.from_values(values)


def run(search, score):
    """Drive a search with a score for each configuration; returns the rounds and the choice."""
    rounds = []
    configs = next(search)
    while True:
        rounds.append(configs)
        try:
            configs = search.send([score(config) for config in configs])
        except StopIteration as stop:
            return rounds, stop.value


def test_a_grid_is_every_combination_and_single_values_are_fixed():
    configs = space(num_layers=[1, 2], kernel=["rw", "drw"], epochs=7).grid(BASE)
    found = {(c.num_layers, c.kernel, c.epochs) for c in configs}
    assert found == {(n, k, 7) for n in (1, 2) for k in ("rw", "drw")}
    assert len(configs) == 4


def test_equal_configurations_count_once():
    assert len(space(num_layers=[1, 1, 2]).grid(BASE)) == 2


def test_a_fixed_key_is_no_longer_searched():
    configs = space(num_layers=[1, 2], epochs=[5, 9]).fixed({"epochs": 3}).grid(BASE)
    assert [(c.num_layers, c.epochs) for c in configs] == [(1, 3), (2, 3)]


def test_a_sample_is_distinct_repeatable_and_grows():
    wide = space(num_layers=[1, 2, 3], hidden_channels=[8, 16], dropout={"low": 0.0, "high": 0.5})
    small, large = wide.sample(BASE, 4, seed=3), wide.sample(BASE, 9, seed=3)
    assert len(set(large)) == 9
    assert large[:4] == small
    assert wide.sample(BASE, 4, seed=4) != small
    assert all(0 <= config.dropout < 0.5 for config in large)
    assert len(space(num_layers=[1, 2]).sample(BASE, 10)) == 2


def test_a_logarithmic_range_draws_evenly_in_the_logarithm():
    configs = space(learning_rate={"low": 1e-4, "high": 1e-2, "log": True}).sample(BASE, 200)
    assert all(1e-4 <= c.learning_rate <= 1e-2 for c in configs)
    below = sum(c.learning_rate < 1e-3 for c in configs)
    assert 70 < below < 130


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_layer": [1]}, "unknown key 'num_layer'"),
        ({"num_layers": ["two"]}, "num_layers is 'two'"),
        ({"num_layers": []}, "num_layers has no values"),
        ({"seed": [1, 2]}, "seed is not searched"),
        ({"fold": 3}, "fold is not searched"),
        ({"dropout": {"low": 0.5, "high": 0.1}}, "low < high"),
        ({"learning_rate": {"low": 0, "high": 1, "log": True}}, "above 0 with log"),
        ({"num_layers": {"low": 1, "high": 3}}, "takes any number"),
        ({"dropout": {"from": 0.5}}, "low and high"),
    ],
)
def test_what_cannot_be_searched_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        space(**values)


def test_a_grid_needs_lists_and_a_size_that_can_be_run():
    with pytest.raises(ConfigError, match="dropout is a range"):
        space(dropout={"low": 0.0, "high": 0.5}).grid(BASE)
    with pytest.raises(ConfigError, match="1,728,000 combinations"):
        SearchSpace.read(default_grid("paper", "kergnn")).grid(BASE)


def test_the_best_validation_score_is_selected_and_the_loss_decides_ties():
    configs = space(num_layers=[1, 2, 3, 4]).grid(BASE)
    scores = {1: (0.8, -0.5), 2: (0.9, -0.6), 3: (0.9, -0.4), 4: None}
    rounds, chosen = run(exhaustive(configs), lambda c: scores[c.num_layers])
    assert rounds == [configs]
    assert chosen.num_layers == 3


def test_nothing_is_selected_if_all_failed():
    configs = space(num_layers=[1, 2, 3, 4]).grid(BASE)
    assert run(exhaustive(configs), lambda c: None)[1] is None
    assert run(halving(configs), lambda c: None)[1] is None


def test_halving_gives_more_epochs_to_fewer():
    configs = space(hidden_channels=list(range(1, 10)), epochs=90).grid(BASE)
    rounds, chosen = run(halving(configs), lambda c: (c.hidden_channels / 10, 0.0))
    assert [len(configs) for configs in rounds] == [9, 3]  # one is left: nothing to compare
    assert [{c.epochs for c in configs} for configs in rounds] == [{10}, {30}]
    assert {c.hidden_channels for c in rounds[1]} == {7, 8, 9}
    assert (chosen.hidden_channels, chosen.epochs) == (9, 90)


def test_halving_of_one_configuration_trains_it_once():
    (config,) = configs = space(epochs=5).grid(BASE)
    assert run(halving(configs), lambda c: (1.0, 0.0)) == ([[config]], config)


def test_default_grids_are_small_and_every_one_can_be_read():
    folder = default_grid("MUTAG", "kergnn").parent
    for path in folder.glob("*.toml"):
        if path.stem != "paper":
            configs = SearchSpace.read(path).grid(BASE)
            # The price C of a kernel machine costs next to nothing: the Gram matrix is the same.
            free = {tuple(o for o in config.options if o[0] != "C") for config in configs}
            kernel = any("C" in dict(config.options) for config in configs)
            assert 1 <= (len(free) if kernel else len(configs)) <= 8, path
    assert default_grid("nci1", "kergnn").stem == "nci1"
    assert default_grid("my/own.jsonl", "kergnn").stem == "kergnn"
    with pytest.raises(ValueError, match="model is 'nothing'"):
        default_grid("NCI1", "nothing")


def test_node_sets_are_drawn_60_20_20():
    for name in ("Cora", "Citeseer", "Pubmed", "Chameleon"):
        assert SearchSpace.read(default_grid(name, "kergnn")).choices["splits"] == ["drawn"]


def test_a_mistake_in_a_file_names_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("num_layers = [1, 'x']")
    with pytest.raises(ConfigError, match=r"mine\.toml: num_layers is 'x'"):
        SearchSpace.read(path)
    path.write_text("num_layers = ")
    with pytest.raises(ConfigError, match=r"mine\.toml: not TOML"):
        SearchSpace.read(path)
    assert Range(1, 2).log is False


def test_networks_choose_among_the_features_of_kergnn_and_their_own():
    """Several of KerGNN's, or the one that it has fixed; ``None`` is the default of the set."""
    several = default_space("Chameleon-filtered", "gcn").choices["features"]
    assert several == [None, "attr", "neighbors"]
    fixed = "onehot-degree+cliques"
    assert default_space("IMDB-BINARY", "gin").choices["features"] == [None, fixed]
    assert default_space("IMDB-BINARY", "kergnn").choices["features"] == [fixed]
    assert fixed in default_space("IMDB-BINARY", "gckn-unsupervised").choices["features"]
    assert "features" not in default_space("IMDB-BINARY", "wl").choices
    assert "features" not in default_space("MUTAG", "gin").choices


def test_a_file_of_ones_own_has_no_grid_of_a_named_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("enzymes", "gin.jsonl"):
        (tmp_path / name).touch()
        assert default_grid(name, "kergnn").stem == "kergnn"
        assert "features" not in default_space(name, "gin").choices
