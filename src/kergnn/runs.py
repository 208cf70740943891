"""Run directories: what a training run leaves, how it is resumed, and how it predicts.

| file | what it holds |
|---|---|
| ``config.toml`` | the resolved configuration |
| ``run.json`` | data fingerprint, split, fitted features, class names, versions |
| ``checkpoint.safetensors`` | the state of the training, to resume it |
| ``metrics.csv`` | figures by epoch |
| ``model.safetensors`` | the weights of the epoch that was kept: the best or the last |
| ``predictions.csv`` | the test part: true and predicted classes, probabilities |
| ``results.json`` | test figures, kept epoch, seconds an epoch |
| ``curves.svg`` | loss and validation metric by epoch |
| ``report.html``, ``figures/`` | what the filters learned, see :mod:`kergnn.explain` |
| ``explanation.json`` | how true the explanations are, where that was measured |

Every file is written under another name, synced and renamed. Nothing is pickled.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kergnn._hints import counted
from kergnn._threads import use_threads
from kergnn.checkpoints import TrainingState, load_checkpoint, save_checkpoint
from kergnn.config import RunConfig, load_config
from kergnn.data import (
    DataError,
    Features,
    GraphSet,
    Split,
    load_graphs,
)
from kergnn.data.store import load_tensors, save_tensors, write_atomic
from kergnn.models import build_model
from kergnn.outputs import curves, metrics_table, prediction_table
from kergnn.prediction import Batches, metrics, predict_probabilities
from kergnn.preparation import (
    ego_graphs,
    find_split,
    fingerprint,
    hide_test,
    make_batches,
    prepare_trainer,
    resolve_config,
)
from kergnn.training import Trainer, resolve_device
from kergnn.versions import software_versions

_CHECKPOINT_SECONDS = 2.0


@dataclass(frozen=True)
class Reporter:
    """Where a run tells what it is doing; by default nowhere.

    Args:
        message: called with a line of text.
        building: called with the numbers of nodes done and in all, while ego-graphs are built.
        epoch: called after every epoch with the configuration and the state.
    """

    message: Callable[[str], None] = lambda text: None
    building: Callable[[int, int], None] = lambda done, total: None
    epoch: Callable[[RunConfig, TrainingState], None] = lambda config, state: None


@dataclass(frozen=True)
class TrainedRun:
    """A finished run, loaded for prediction."""

    config: RunConfig
    model: nn.Module
    features: Features
    class_names: tuple[str, ...]


RUN_FILES = (
    "results.json",
    "model.safetensors",
    "checkpoint.safetensors",
    "metrics.csv",
    "predictions.csv",
    "curves.svg",
    "report.html",
    "explanation.json",
    "run.json",
    "config.toml",
)


def start_run(
    config: RunConfig, out: Path, mirror: Path | None = None, reporter: Reporter | None = None
) -> dict[str, Any]:
    """Train in the directory ``out`` and return the results.

    Files of an earlier run there are removed, once it is certain that the new one can start.
    """
    graphs = load_graphs(config.dataset, mirror)
    return _train(resolve_config(config, graphs), out, graphs, mirror, reporter or Reporter())


def resume_run(
    out: Path, mirror: Path | None = None, reporter: Reporter | None = None
) -> dict[str, Any]:
    """Go on with a run that was interrupted; a finished one only returns its results.

    It goes on with as many threads as it was started with, so that no digit is another.
    """
    config = _read_config(out)
    if (out / "results.json").is_file():
        (reporter or Reporter()).message(f"{out}: the run is finished; these are its results")
        return read_json(out / "results.json")
    state = None
    if (out / "checkpoint.safetensors").is_file():
        state = load_checkpoint(out)
    graphs = load_graphs(config.dataset, mirror)
    with use_threads(threads_of(out)):
        return _train(config, out, graphs, mirror, reporter or Reporter(), state, resuming=True)


def threads_of(out: Path) -> int | None:
    """Return how many threads a run was started with, ``None`` where it does not tell."""
    threads = read_json(out / "run.json").get("threads") if (out / "run.json").is_file() else None
    return threads if isinstance(threads, int) and threads > 0 else None


def load_run(out: Path, device: str = "auto") -> TrainedRun:
    """Load a finished run, on whatever device there is."""
    config = _read_config(out)
    if not (out / "model.safetensors").is_file():
        raise DataError(f"{out}: the run is not finished; go on with kergnn train --resume {out}")
    record = read_json(out / "run.json")
    try:
        features = Features.from_dict(record["features"])
        width = len(features.names)
        of_edges, vocabulary = features.edge_channels, features.vocabulary
        class_names = tuple(record["class_names"])
    except DataError as error:
        raise DataError(f"{out / 'run.json'}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{out / 'run.json'}: not the record of a run ({error!r})") from None
    weights, _ = load_tensors(out / "model.safetensors")
    task = config.task or "graph"
    model = build_model(config, width, len(class_names), task, of_edges, vocabulary)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise DataError(
            f"{out / 'model.safetensors'}: does not fit config.toml ({reason})"
        ) from None
    config = config.replace({"device": device})
    return TrainedRun(config, model.to(resolve_device(device)).eval(), features, class_names)


def predict(
    run: TrainedRun,
    graphs: GraphSet,
    reporter: Reporter | None = None,
    unknown: str = "error",
) -> Tensor:
    """Return the class probabilities of all graphs, or of all nodes: (G or N, classes).

    ``unknown`` is what to do with unknown node labels, see :class:`kergnn.data.Features`.
    """
    report = reporter or Reporter()
    ego = ego_graphs(run.config, graphs, report.building)
    batches = make_batches(run.config, graphs, run.features, ego, unknown)
    count = graphs.num_graphs if run.config.task == "graph" else graphs.num_nodes
    return predict_probabilities(run.model, batches, torch.arange(count))


def _train(
    config: RunConfig,
    out: Path,
    graphs: GraphSet,
    mirror: Path | None,
    report: Reporter,
    state: TrainingState | None = None,
    resuming: bool = False,
) -> dict[str, Any]:
    split = find_split(config, graphs, mirror)
    ego = ego_graphs(config, graphs, report.building)
    trainer, features = prepare_trainer(config, hide_test(graphs, ego, split))
    record = _record(config, graphs, split, features)
    if resuming:
        _check_unchanged(out, record, config.dataset)
    else:
        for path in (*(out / name for name in RUN_FILES), *out.glob("figures/*.svg")):
            path.unlink(missing_ok=True)
    for leftover in (p for name in RUN_FILES for p in out.glob(f".{name}.*")):
        leftover.unlink()  # of a write that was killed
    report.message(
        f"{graphs.name}: {counted(graphs.num_graphs, 'graph')}, {graphs.num_nodes} nodes, "
        f"{graphs.num_classes} classes; features {config.features} ({len(features.names)})"
    )
    report.message(
        f"split {split.name}: {len(split.train)} {graphs.task}s for training, "
        f"{len(split.validation)} for validation, {len(split.test)} for the test"
    )
    if rare := _rare_classes(graphs):
        report.message(
            f"too few {graphs.task}s for training, validation and test: class {', '.join(rare[:5])}"
            + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
        )
    most = config.max_nodes
    full = 0 if ego is None or most is None else int(torch.eq(ego.size, most).sum())
    if full:
        report.message(
            f"{full} of {graphs.num_nodes} ego-graphs have the {most} nodes they may have at most "
            "(max_nodes)"
        )
    if state is not None:
        trainer.restore(state)
        report.message(f"resuming after epoch {state.epoch}")
    elif resuming:
        report.message("there is no checkpoint yet: starting again with the first epoch")
    write_atomic(out / "run.json", _json(record))
    write_atomic(out / "config.toml", config.to_toml().encode())  # from here on it can be resumed
    saved = time.monotonic()

    def after_epoch(state: TrainingState) -> None:
        nonlocal saved
        report.epoch(config, state)
        if time.monotonic() - saved >= _CHECKPOINT_SECONDS:
            save_checkpoint(out, state)
            saved = time.monotonic()

    try:
        trainer.run(after_epoch)
    except KeyboardInterrupt:
        if trainer.state.epoch:
            save_checkpoint(out, trainer.state)
        raise
    classes = int(graphs.y[split.validation].bincount().count_nonzero())
    guess = trainer.state.best_figures["balanced_accuracy"] * classes < 1 + 1e-9
    if guess and classes > 1 and config.metric != "roc_auc":  # a ranking may be good all the same
        report.message(
            "the kept epoch classifies the validation part no better than a guess: a smaller "
            "learning_rate, more epochs or other features may help"
        )
    # A kind of edges that only the test part has is none: no filter has learned it.
    batches = make_batches(config, graphs, features, ego, unknown="zeros")
    return _finish(out, config, trainer, graphs, split, batches)


def _rare_classes(graphs: GraphSet) -> list[str]:
    """Return the names of the classes that cannot be in all three parts, with their sizes."""
    sizes = graphs.y[graphs.y >= 0].bincount(minlength=graphs.num_classes).tolist()
    named = zip(graphs.class_names, sizes, strict=True)
    return [f"{name} ({size})" for name, size in named if size < 3]


def _finish(
    out: Path,
    config: RunConfig,
    trainer: Trainer,
    graphs: GraphSet,
    split: Split,
    batches: Batches,
) -> dict[str, Any]:
    """Look at the test part, once, and write what remains of the run."""
    state = trainer.state
    probabilities = predict_probabilities(trainer.model, batches, split.test)
    seconds = [row["seconds"] for row in state.history]
    results = {
        "test": metrics(probabilities, graphs.y[split.test]),
        "validation": state.best_figures,
        "metric": config.metric,
        "best_epoch": state.best_epoch,
        "epochs": state.epoch,
        "seconds_per_epoch": statistics.median_low(seconds),  # the first one may have compiled
        "seconds": sum(seconds),
    }
    write_atomic(out / "metrics.csv", metrics_table(state.history).encode())
    save_tensors(out / "model.safetensors", state.best_weights)
    table = prediction_table(graphs.task, graphs, split.test, probabilities, graphs.class_names)
    write_atomic(out / "predictions.csv", table.encode())
    write_atomic(out / "curves.svg", curves(state.history, config.metric, state.best_epoch))
    write_atomic(out / "results.json", _json(results))
    (out / "checkpoint.safetensors").unlink(missing_ok=True)
    return results


def _record(
    config: RunConfig, graphs: GraphSet, split: Split, features: Features
) -> dict[str, Any]:
    return {
        "dataset": graphs.name,
        "source": graphs.source,
        "fingerprint": fingerprint(config.model, graphs),
        "class_names": list(graphs.class_names),
        "config_hash": config.hash,
        "split": split.name,
        "split_hash": split.hash,
        "split_sizes": [len(split.train), len(split.validation), len(split.test)],
        "features": features.to_dict(),
        "feature_names": features.names,
        "versions": software_versions(),
        "threads": torch.get_num_threads(),
    }


def _check_unchanged(out: Path, record: dict[str, Any], dataset: str) -> None:
    """Refuse to go on with other data, another split or other settings than at the start."""
    if not (out / "run.json").is_file():
        return  # killed before it was written: nothing was trained yet
    stored = read_json(out / "run.json")
    for key, text in {
        "fingerprint": f"{dataset}: not the data",
        "split_hash": f"split {record['split']}: not the split ({stored.get('split')})",
        "config_hash": f"{out / 'config.toml'}: not the settings",
    }.items():
        if stored.get(key) != record[key]:
            raise DataError(f"{text} that the run in {out} was started with")


def _read_config(out: Path) -> RunConfig:
    if not (out / "config.toml").is_file():
        raise DataError(f"{out}: there is no run here (config.toml is missing)")
    return load_config(out / "config.toml")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that a run left."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    if not isinstance(record, dict):
        raise DataError(f"{path}: not a JSON object")
    return record


def _json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
