import pytest

from kergnn.config import ConfigError, RunConfig, load_config, parse_assignment, read_toml


def test_a_configuration_comes_back_from_toml_with_its_nones(tmp_path):
    config = RunConfig(max_nodes=None, kernel="drw", dropout=0.5, class_weights=True, clip=None)
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert load_config(tmp_path / "config.toml") == config
    assert config.hash == load_config(tmp_path / "config.toml").hash
    assert config.hash != RunConfig().hash


def test_the_file_of_a_run_is_a_configuration_too(tmp_path):
    config = RunConfig(max_nodes=None, normalize=None, clip=None)
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert RunConfig().replace(read_toml(tmp_path / "config.toml")) == config


def test_a_partial_file_sets_only_its_keys(tmp_path):
    (tmp_path / "c.toml").write_text("num_layers = 3\nlearning_rate = 1\n")
    assert read_toml(tmp_path / "c.toml") == {"num_layers": 3, "learning_rate": 1.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num_layers=3", ("num_layers", 3)),
        ("dropout = 0.25", ("dropout", 0.25)),
        ("learning_rate=1", ("learning_rate", 1.0)),
        ("max_nodes=none", ("max_nodes", None)),
        ("class_weights=true", ("class_weights", True)),
        ("features=label+attr", ("features", "label+attr")),
        ("normalize=none", ("normalize", None)),
    ],
)
def test_assignments(text, expected):
    assert parse_assignment(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_layers", "'num_layers' is not of the form key=value"),
        (
            "layers=3",
            r"unknown key 'layers' \(did you mean num_layers\?\); known are dataset, task",
        ),
        ("num_layers=three", "num_layers is 'three': it must be an integer"),
        ("num_layers=none", "num_layers is 'none': it must be an integer"),
        ("max_nodes=many", "max_nodes is 'many': it must be an integer or none"),
        ("dropout=nan", "dropout is 'nan': it must be a number"),
        ("class_weights=1", "class_weights is '1': it must be true or false"),
    ],
)
def test_bad_assignments_are_named(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_layers = ", r"c\.toml: not TOML"),
        ("layers = 3", r"c\.toml: unknown key 'layers'"),
        ("num_layers = '3'", r"c\.toml: num_layers is '3': it must be an integer"),
        ("num_layers = true", "num_layers is True"),
        ("dropout = inf", "dropout is inf"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_toml(tmp_path / "c.toml")


def test_options_of_a_model_are_keys_too(tmp_path):
    config = RunConfig().replace({"options.heads": 8, "options.alpha": 0.5})
    config = config.replace(dict([parse_assignment("options.alpha=0.1")]))
    assert config.options == (("alpha", 0.1), ("heads", 8))
    assert config.to_dict()["options.heads"] == 8
    (tmp_path / "config.toml").write_text(config.to_toml())
    assert "[options]" in config.to_toml()
    assert load_config(tmp_path / "config.toml") == config
    assert len({config.hash, RunConfig().hash, config.replace({"options.heads": 4}).hash}) == 3
    assert parse_assignment("options.aggr=max") == ("options.aggr", "max")
    assert parse_assignment("options.connected=true") == ("options.connected", True)


def test_bad_options_are_named():
    with pytest.raises(ConfigError, match=r"options\.heads is \[1, 2\]: it must be a number"):
        parse_assignment("options.heads=[1, 2]")
    with pytest.raises(ConfigError, match="options is 3: it must be a table"):
        RunConfig().replace({"options": 3})


def test_a_new_key_that_is_none_changes_no_hash():
    """Stored results are found by these hashes: this one must stay."""
    assert RunConfig().hash == "53a4d081e57d"


def test_a_record_may_have_a_key_that_is_gone_and_was_none():
    old = {**RunConfig(num_layers=3).to_dict(), "head_dropout": None}
    assert RunConfig.from_record(old) == RunConfig(num_layers=3)
    with pytest.raises(ConfigError, match="head_dropout"):
        RunConfig.from_record({**old, "head_dropout": 0.5})
