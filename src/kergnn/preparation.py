"""From a configuration to a training: settings, split, features, and what may be known before the
test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kergnn.batches import GraphBatches
from kergnn.config import ConfigError, RunConfig
from kergnn.data import (
    DataError,
    Features,
    GraphSet,
    Split,
    cached_ego_graphs,
    draw_split,
    get_split,
    mirror_dir,
)
from kergnn.edgebatches import EdgeBatches
from kergnn.egographs import EgoGraphs
from kergnn.machines import check_machine
from kergnn.models import INPUT_CHANNELS, build_model, has_words, model_info, unused_keys
from kergnn.prediction import Batches
from kergnn.training import Trainer, check_settings, resolve_device


@dataclass(frozen=True)
class Development:
    """All that training and selection may know of a data set: the test part is not in it.

    Args:
        graphs: the graphs of the training and the validation part only; or, where nodes have
            classes, the whole graph without the classes of the test nodes.
        ego: the ego-graphs of their nodes, for a model that takes them.
        train: positions of the training graphs or nodes.
        validation: positions of the validation graphs or nodes.
    """

    graphs: GraphSet
    ego: EgoGraphs | None
    train: Tensor
    validation: Tensor


def hide_test(graphs: GraphSet, ego: EgoGraphs | None, split: Split) -> Development:
    """Take the test part away, and all that is in no part."""
    kept = torch.cat([split.train, split.validation]).sort().values
    if graphs.task == "node":
        y = torch.full_like(graphs.y, -1)
        y[kept] = graphs.y[kept]
        return Development(replace(graphs, y=y), ego, split.train, split.validation)
    if ego is not None:
        x = torch.empty(graphs.num_nodes, 0)
        cut = GraphBatches(graphs, x, ego, torch.device("cpu"))(kept).ego
        ego = EgoGraphs(**{field.name: getattr(cut, field.name) for field in fields(EgoGraphs)})
    return Development(
        graphs.select(kept),
        ego,
        torch.searchsorted(kept, split.train),
        torch.searchsorted(kept, split.validation),
    )


def prepare_trainer(config: RunConfig, development: Development) -> tuple[Trainer, Features]:
    """Fit the features to the training part and build the model and its trainer."""
    graphs, train = development.graphs, development.train
    features, batches = _fitted(config, development)
    model = build_model(
        config,
        batches.x.size(1),
        graphs.num_classes,
        graphs.task,
        features.edge_channels,
        features.vocabulary,
    )
    # What a model takes from the training part before its first epoch, such as anchors.
    start_from = getattr(model, "start_from", None)
    if start_from is not None:
        # Nodes of one graph are classified together: their neighbourhoods are all there is.
        every = torch.arange(graphs.num_graphs)
        start_from(*batches(train if graphs.task == "graph" else every).inputs[:2])
    trainer = Trainer(config, model, graphs, batches, train, development.validation)
    return trainer, features


def _fitted(config: RunConfig, development: Development) -> tuple[Features, Batches]:
    """Fit the features and give them to all graphs.

    The last result stays with the development set: features of a large one take longer than many
    an epoch, and a search trains on the same ones again and again.
    """
    kept: dict[Any, tuple[Features, Batches]] = development.__dict__.setdefault("_fitted", {})
    key = batches_key(config)
    if key not in kept:
        kept.clear()  # before more memory is taken
        graphs = development.graphs
        features = fit_features(config, graphs, development.train)
        kept[key] = features, make_batches(config, graphs, features, development.ego)
    return kept[key]


def batches_key(config: RunConfig) -> tuple[Any, ...]:
    """Return what of a configuration decides the features and batches of given graphs."""
    return config.features, config.device, model_info(config.model).edges


def fit_features(config: RunConfig, graphs: GraphSet, train: Tensor) -> Features:
    """Fit the feature recipe to the training part."""
    return Features.fit(str(config.features), graphs, _nodes_of(graphs, train))


def make_batches(
    config: RunConfig,
    graphs: GraphSet,
    features: Features,
    ego: EgoGraphs | None,
    unknown: str = "error",
) -> Batches:
    """Return the graphs as the model takes them: with ego-graphs, or with edges.

    ``unknown`` is what to do with unknown node labels, see :class:`kergnn.data.Features`.
    """
    device, x = resolve_device(config.device), features(graphs, unknown)
    if ego is not None:
        return GraphBatches(graphs, x, ego, device)
    edge_attr = features.of_edges(graphs, unknown) if model_info(config.model).edges else None
    return EdgeBatches(graphs, x, device, edge_attr)


def ego_graphs(
    config: RunConfig,
    graphs: GraphSet,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> EgoGraphs | None:
    """Return the ego-graphs, if the model takes them."""
    if model_info(config.model).kind != "kergnn":
        return None
    return cached_ego_graphs(graphs, config.num_hops, config.max_nodes, progress)


def fingerprint(model: str, graphs: GraphSet) -> str:
    """Return a hash of all that a model sees of the data, labels of edges included if it does."""
    edges = graphs.edge_fingerprint if model_info(model).edges else ""
    return f"{graphs.fingerprint}-{edges}" if edges else graphs.fingerprint


def resolve_config(config: RunConfig, graphs: GraphSet) -> RunConfig:
    """Put values in the place of those that depend on the data."""
    if config.task not in (None, "graph", "node"):
        raise ConfigError(f"task is {config.task!r}: it must be 'graph' or 'node'")
    if config.task is not None and config.task != graphs.task:
        raise ConfigError(
            f"task is {config.task!r}, but {graphs.name} has classes for {graphs.task}s"
        )
    path = Path(config.dataset)
    info = model_info(config.model)
    if graphs.task not in info.tasks:
        raise ConfigError(
            f"model is {info.name!r}: it classifies {info.tasks[0]}s, and {graphs.name} has "
            f"classes for {graphs.task}s"
        )
    features = config.features or info.recipe(graphs)
    # The largest degree, the largest clique and frequent colours are nothing that may be known of
    # the test part: always wide, or never.
    parts, every = features.split("+"), torch.arange(graphs.num_nodes)
    count = len(Features.fit(features, graphs, every).names)
    for part in {"binned-degree", "cliques"} & {*parts}:
        count -= len(Features.fit(part, graphs, every).names)
    if has_words(features) and info.kind == "kernel":
        raise ConfigError(f"features is {features!r}: model {info.name!r} has no use for words")
    if has_words(features) and config.input_channels == 0:
        raise ConfigError(f"input_channels is 0: with features {features!r} it must be at least 1")
    wide = count > 100 or has_words(features) or bool({"onehot-degree", "wl"} & {*parts})
    width = INPUT_CHANNELS if wide else 0
    chosen: dict[str, Any] = {"input_channels": width, **default_dropout(graphs.task)}
    ignored = [
        key
        for key in unused_keys(config)
        if key not in chosen or getattr(config, key) != chosen[key]
    ]
    if ignored:
        raise ConfigError(f"{', '.join(ignored)}: model {info.name!r} has no use for it")
    return config.replace(
        {
            # A path must mean the same file when the run is resumed from another folder.
            "dataset": str(path.resolve()) if path.exists() else config.dataset,
            "task": graphs.task,
            "features": features,
            **{key: value for key, value in chosen.items() if getattr(config, key) is None},
        }
    )


def default_dropout(task: str) -> dict[str, float]:
    """Return what is dropped by default."""
    if task == "node":
        return {"dropout": 0.5, "input_dropout": 0.5}
    return {"dropout": 0.2, "input_dropout": 0.0}


def check_config(config: RunConfig, graphs: GraphSet) -> None:
    """Refuse what no training could begin with, before one does."""
    check_settings(config, graphs.num_classes)
    if model_info(config.model).kind == "kernel":
        check_machine(config)
    else:
        build_model(config, 1, graphs.num_classes, graphs.task)


def find_split(config: RunConfig, graphs: GraphSet, mirror: Path | None) -> Split:
    """Return the split that a configuration names."""
    if config.splits == "drawn":
        split = draw_split(graphs, config.fold)
    elif config.splits == "published":
        split = get_split(graphs, config.fold, mirror_dir(mirror))
    else:
        raise ConfigError(f"splits is {config.splits!r}: it must be 'published' or 'drawn'")
    if len(split.validation) == 0:
        raise DataError(f"split {split.name} of {graphs.name} has no validation part")
    return split


def _nodes_of(graphs: GraphSet, part: Tensor) -> Tensor:
    if graphs.task == "node":
        return part
    chosen = torch.zeros(graphs.num_graphs, dtype=torch.bool)
    chosen[part] = True
    return chosen[graphs.graph_of].nonzero().flatten()
