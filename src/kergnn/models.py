"""The models that can be trained or fitted, by name: KerGNN and its competitors."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from kergnn._checks import check_integer
from kergnn._hints import did_you_mean
from kergnn.baselines import baseline_names, get_baseline
from kergnn.config import ConfigError, RunConfig
from kergnn.data import GraphSet, default_recipe
from kergnn.nn import KerGNN, WithWords, WordMap

# Keys of a configuration that mean the same for all models.
_SHARED = ("hidden_channels", "num_layers", "dropout")
# Keys that a support vector machine has no use for.
_TRAINING = (
    *("epochs", "patience", "batch_size", "learning_rate", "schedule", "weight_decay", "clip"),
    *("class_weights", "keep_epoch"),
)
# What a model or a kernel is given beside them.
_DATA = ("in_channels", "out_channels", "edge_channels", "graphs", "x", "train", "progress")
_GIVEN = {*_SHARED, *_DATA}


# What many features, and words, are mapped to by default; a competitor's words always.
INPUT_CHANNELS = 64


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model.

    Args:
        name: its name, as in ``--model gin``.
        kind: ``"kergnn"``, ``"network"`` for other networks, or ``"kernel"`` for a kernel with a
            support vector machine.
        tasks: ``"graph"``, ``"node"`` or both.
        paper: authors and place.
        summary: what it does, in one line.
        edges: whether it takes features of the edges.
        counts: whether it is a kernel that counts equal labels, whatever they are.
        degrees: the recipe for sets without labels and attributes.
    """

    name: str
    kind: str
    tasks: tuple[str, ...]
    paper: str
    summary: str
    edges: bool = False
    counts: bool = False
    degrees: str = "degree"

    def recipe(self, graphs: GraphSet) -> str:
        """Return the features by default; kernels that count labels need few of them."""
        if self.counts:
            return self.degrees if graphs.labels is None else "label"
        recipe = default_recipe(graphs)
        return self.degrees if recipe == "degree" else recipe


def model_names() -> list[str]:
    """Return the names of all models, KerGNN first."""
    return ["kergnn", *baseline_names()]


def model_info(name: str) -> ModelInfo:
    """Return what is known of a model."""
    if name == "kergnn":
        return ModelInfo(
            "kergnn",
            "kergnn",
            ("graph", "node"),
            "Feng et al., AAAI 2022",
            "filters are small trainable graphs, compared with ego-graphs by a kernel",
        )
    if name not in baseline_names():
        hint = did_you_mean(name, model_names())
        raise ConfigError(f"model is {name!r}{hint}: it must be one of {', '.join(model_names())}")
    known = get_baseline(name)
    return ModelInfo(
        name,
        known.kind,
        (known.task,),
        known.paper,
        known.summary,
        known.edges,
        known.counts,
        known.degrees,
    )


def model_options(name: str) -> dict[str, Any]:
    """Return the options that only this model takes, with their defaults."""
    if model_info(name).kind == "kergnn":
        return {}
    parameters = inspect.signature(get_baseline(name).load()).parameters
    own = {key: p.default for key, p in parameters.items() if key not in _GIVEN}
    return own | ({"C": 1.0} if model_info(name).kind == "kernel" else {})


def build_model(
    config: RunConfig,
    in_channels: int,
    num_classes: int,
    task: str,
    edge_channels: int = 0,
    vocabulary: tuple[int, ...] = (),
) -> nn.Module:
    """Build the network that a configuration describes, with weights drawn from its seed.

    Args:
        config: the configuration.
        in_channels: number of features of a node.
        num_classes: number of classes.
        task: ``"graph"`` or ``"node"``.
        edge_channels: number of features of an edge.
        vocabulary: of each of the last features that are words, how many there are.
    """
    if not 0 <= config.seed < 2**32:
        raise ConfigError(f"seed is {config.seed}: it must be from 0 to 2**32 - 1")
    info = model_info(config.model)
    if info.kind == "kernel":
        raise ConfigError(f"model is {info.name!r}: a kernel has nothing to train, see evaluate")
    if task not in info.tasks:
        raise ConfigError(f"model is {info.name!r}: it classifies {info.tasks[0]}s, not {task}s")
    torch.manual_seed(config.seed)
    if info.kind == "network":
        check_integer("hidden_channels", config.hidden_channels, minimum=1)
        if not 0 <= (config.dropout or 0.0) < 1:
            raise ConfigError(f"dropout is {config.dropout}: it must be at least 0 and below 1")
        constructor = get_baseline(info.name).load()
        known = set(inspect.signature(constructor).parameters)
        arguments = shared_arguments(config, known) | checked_options(config)
        if info.edges and edge_channels:
            arguments["edge_channels"] = edge_channels
        words = None
        if vocabulary:
            words = WordMap(in_channels, INPUT_CHANNELS, vocabulary, config.input_dropout or 0.0)
        network: nn.Module = constructor(
            in_channels=in_channels if words is None else INPUT_CHANNELS,
            out_channels=num_classes,
            **arguments,
        )
        return network if words is None else WithWords(words, network)
    checked_options(config)
    return KerGNN(
        in_channels,
        config.hidden_channels,
        num_classes,
        num_layers=config.num_layers,
        filter_size=config.filter_size,
        num_steps=config.num_steps,
        kernel=_kernels(config.kernel),
        num_hops=config.num_hops,
        max_nodes=config.max_nodes,
        input_channels=config.input_channels or None,
        normalize=config.normalize,
        update=config.update,
        step_weights=_numbers(config.step_weights),
        norm=config.norm,
        dropout=config.dropout or 0.0,
        input_dropout=config.input_dropout or 0.0,
        readout=config.readout,
        head_channels=config.head_channels,
        filter_init=config.filter_init,
        hard_edges=bool(config.hard_edges),
        edge_penalty=config.edge_penalty or 0.0,
        evidence_penalty=config.evidence_penalty or 0.0,
        restart=config.restart,
        task=task,
        vocabulary=vocabulary,
    )


def has_words(features: str | None) -> bool:
    """Whether a feature recipe has words."""
    return "subtrees" in (features or "").split("+")


def shared_arguments(config: RunConfig, known: set[str]) -> dict[str, Any]:
    """Return those of the keys that mean the same for all models which this one knows."""
    return {k: getattr(config, k) for k in _SHARED if k in known and getattr(config, k) is not None}


def checked_options(config: RunConfig) -> dict[str, Any]:
    """Return the model's own options, if it knows them all."""
    options, allowed = dict(config.options), model_options(config.model)
    for name in options:
        if name not in allowed:
            names = ", ".join(sorted(allowed)) or "none"
            raise ConfigError(f"options.{name}: the options of {config.model!r} are {names}")
    return options


def unused_keys(config: RunConfig) -> list[str]:
    """Return the keys that a configuration sets and its model has no use for.

    A network takes few of KerGNN's arguments, a kernel none of the settings of a training.
    """
    info = model_info(config.model)
    if info.kind == "kergnn":
        return []
    unused = (inspect.signature(KerGNN).parameters.keys() & config.to_dict().keys()) - {"task"}
    unused |= {*(_TRAINING if info.kind == "kernel" else ())}
    known = inspect.signature(get_baseline(info.name).load()).parameters
    unused -= {key for key in _SHARED if key in known}
    if has_words(config.features):
        unused.discard("input_dropout")
    plain = RunConfig()
    return [key for key in sorted(unused) if getattr(config, key) != getattr(plain, key)]


def _numbers(text: str | None) -> str | list[float] | None:
    """Turn ``1, 0.5, 0.1`` into numbers and leave names alone."""
    try:
        return text if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _kernels(text: str) -> str | dict[str, int]:
    """Turn ``rw:16, drw:16`` into numbers of filters and leave a single name alone."""
    if ":" not in text:
        return text
    pairs = [part.split(":") for part in text.split(",")]
    if not all(len(pair) == 2 and pair[1].strip().isdigit() for pair in pairs):
        raise ConfigError(f"kernel is {text!r}: it must be a name, or as in 'rw:16, drw:16'")
    return {name.strip(): int(count) for name, count in pairs}
