import pytest
import torch

from kergnn.config import ConfigError, RunConfig
from kergnn.data import load_graphs
from kergnn.evaluation import SearchSpace, default_grid
from kergnn.machines import _arguments
from kergnn.models import build_model, model_info, model_names, unused_keys
from kergnn.preparation import check_config, resolve_config

NETWORKS = [name for name in model_names() if model_info(name).kind != "kernel"]
KERNELS = [name for name in model_names() if model_info(name).kind == "kernel"]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_configuration_of_a_default_grid_can_be_built(name):
    space = SearchSpace.read(default_grid("anything", name))
    configs = space.grid(RunConfig(model=name))
    assert 1 < len(configs) <= 8
    task = model_info(name).tasks[-1]
    for config in configs:
        model = build_model(config, 5, 3, task)
        assert sum(p.numel() for p in model.parameters()) > 0


@pytest.mark.parametrize("name", KERNELS)
def test_the_default_grid_of_a_kernel_has_a_price_and_known_arguments(name):
    configs = SearchSpace.read(default_grid("anything", name)).grid(RunConfig(model=name))
    assert {"C"} <= {key for config in configs for key, _ in config.options}
    for config in configs:
        arguments = _arguments(config)
        assert "C" not in arguments


def test_options_reach_the_model_and_unknown_ones_are_refused():
    config = RunConfig(model="gat", hidden_channels=16).replace({"options.heads": 2})
    assert build_model(config, 5, 3, "node").convs[0].heads == 2
    with pytest.raises(ConfigError, match=r"options\.head: the options of 'gat' are heads"):
        build_model(RunConfig(model="gat").replace({"options.head": 2}), 5, 3, "node")
    with pytest.raises(ConfigError, match="the options of 'kergnn' are none"):
        build_model(RunConfig().replace({"options.heads": 2}), 5, 3, "graph")


def test_weights_are_drawn_from_the_seed():
    first, again, other = (
        build_model(RunConfig(model="gin", seed=seed), 5, 3, "graph") for seed in (1, 1, 2)
    )
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert any(
        not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("gim", "graph", r"model is 'gim' \(did you mean gin\?\): it must be one of kergnn"),
        ("gcn", "graph", "model is 'gcn': it classifies nodes, not graphs"),
        ("wl", "graph", "a kernel has nothing to train"),
    ],
)
def test_models_that_cannot_be_built(name, task, message):
    with pytest.raises(ConfigError, match=message):
        build_model(RunConfig(model=name), 5, 3, task)


def test_settings_that_a_model_has_no_use_for_are_refused():
    graphs = load_graphs("MUTAG")

    def unused(model, **values):
        try:
            resolve_config(RunConfig(model=model).replace(values), graphs)
        except ConfigError as error:
            return str(error).partition(": model")[0].split(", ")
        return []

    assert unused("gin", num_layers=7, dropout=0.3, learning_rate=1.0) == []
    assert unused("gin", kernel="drw", filter_size=3) == ["filter_size", "kernel"]
    assert unused("gin", input_dropout=0.9, input_channels=16) == [
        "input_channels",
        "input_dropout",
    ]
    assert unused("kergnn", kernel="drw", filter_size=3, epochs=3) == []
    assert unused("wl", num_layers=4, epochs=3) == ["epochs", "num_layers"]
    assert unused("gin", normalize=None, max_nodes=None) == ["max_nodes", "normalize"]
    assert unused("wl", clip=None) == ["clip"]
    assert unused("gntk", num_layers=4) == []
    assert unused("rwgnn", num_steps=4) == ["num_steps"]  # options.num_steps is what it knows
    for name in ("gin", "wl", "rwgnn"):  # what is put in for all models is no setting
        config = resolve_config(RunConfig(model=name), graphs)
        assert resolve_config(config, graphs) == config


@pytest.mark.parametrize("name", [name for name in model_names() if name != "kergnn"])
def test_no_default_grid_has_settings_without_use(name):
    configs = SearchSpace.read(default_grid("anything", name)).grid(RunConfig(model=name))
    assert {key for config in configs for key in unused_keys(config)} == set()


@pytest.mark.parametrize(
    ("model", "values", "message"),
    [
        ("gin", {"hidden_channels": -4}, "hidden_channels is -4"),
        ("gin", {"dropout": 7.0}, "dropout is 7.0: it must be at least 0 and below 1"),
        ("ecc", {"options.filter_channels": 0}, "filter_channels is 0"),
        ("gntk", {"options.scale": "foo"}, "scale is 'foo'"),
        ("wl", {"options.num_iterations": 0}, "num_iterations is 0"),
        ("wl", {"options.C": -1.0}, "C is -1.0: it must be positive"),
    ],
)
def test_wrong_values_are_found_before_the_first_training(model, values, message):
    config = RunConfig(model=model).replace(values)
    with pytest.raises(ValueError, match=message):
        check_config(config, load_graphs("MUTAG"))
