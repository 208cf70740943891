"""A trial: one training, either to select a configuration or to assess the selected one.

A selection trial trains on the training part and is judged on the validation part; it is given a
:class:`~kergnn.preparation.Development`, which has no test part. An assessment trial does the same
and then predicts the test part, once. One that refits trains on both parts; nothing is left to
choose an epoch, so it keeps the last one.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor

from kergnn._threads import use_threads
from kergnn.config import RunConfig, hash_json
from kergnn.data import DataError, Features, GraphSet, Split, load_graphs
from kergnn.evaluation.fold import forget_other_folds, prepare_fold
from kergnn.machines import class_ranking, fit_machine, gram_matrix, is_fitted
from kergnn.memory import forget_peak, peak_memory
from kergnn.models import model_info
from kergnn.prediction import log_loss, metrics, predict_probabilities
from kergnn.preparation import (
    Development,
    batches_key,
    find_split,
    fingerprint,
    fit_features,
    prepare_trainer,
)
from kergnn.training import Trainer
from kergnn.versions import library_code, processor, software_versions

Record: TypeAlias = dict[str, Any]

FORMAT = 1
_DIGITS = 6


@dataclass(frozen=True)
class Trial:
    """What decides the outcome of a trial.

    Args:
        config: the resolved configuration, with its fold and seed.
        dataset: what the data set is called in the store.
        fingerprint: hash of the data.
        split: name of the split.
        split_hash: hash of the three parts.
        assess: whether the test part is predicted in the end.
        refit: whether the validation part is trained on as well.
    """

    config: RunConfig
    dataset: str
    fingerprint: str
    split: str
    split_hash: str
    assess: bool = False
    refit: bool = False

    @property
    def key(self) -> str:
        """The trial's name in a store: a hash of what decides its outcome.

        The data and the split count by their content, not by name or number; the device and the
        versions of the software do not count.
        """
        content = {
            "format": FORMAT,
            "settings": settings(self.config),
            "fingerprint": self.fingerprint,
            "split": self.split_hash,
            "assess": self.assess,
            **({"refit": True} if self.refit else {}),
        }
        return hash_json(content)[:24]

    @property
    def gram_key(self) -> str | None:
        """What decides the Gram matrix of a kernel, which has many prices C; None for a network."""
        if model_info(self.config.model).kind != "kernel":
            return None
        values = {k: v for k, v in settings(self.config).items() if k not in ("options.C", "seed")}
        part = (self.split_hash, self.refit) if is_fitted(self.config.model) else None
        return hash_json([values, self.fingerprint, part])

    @property
    def fold_key(self) -> tuple[Any, ...]:
        """What decides the features and the batches of a network, which are many trials' own."""
        config = self.config
        model = model_info(config.model).kind, config.num_hops, config.max_nodes
        data = self.fingerprint, self.split_hash, self.refit
        return *data, *model, *batches_key(config)

    @property
    def public_config(self) -> RunConfig:
        """The configuration without the folder of a set of one's own, which is private."""
        return self.config.replace({"dataset": self.dataset})


def settings(config: RunConfig) -> Record:
    """Return what a configuration says of the model and its training, without ``None``."""
    elsewhere = ("dataset", "splits", "fold", "device")
    values = config.to_dict().items()
    return {k: v for k, v in values if v is not None and k not in elsewhere}


def run_trial(
    trial: Trial,
    mirror: Path | None = None,
    threads: int = 1,
    kernels: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Record:
    """Train, and return the record of the trial.

    Everything but ``measured`` is the same whenever the trial runs with the same software and as
    many threads on the same kind of processor, for which libraries take the same code.

    Args:
        trial: the trial.
        mirror: folder with copies of the public sets.
        threads: number of threads.
        kernels: folder of Gram matrices.
        progress: called with how far a long computation is.
    """
    start = time.perf_counter()
    # Before the training: whoever edits the source meanwhile changes nothing that is loaded.
    known = describe(trial, threads)
    forget_other_folds(trial.fold_key)
    forget_peak()
    with use_threads(threads):
        graphs, split = _data(trial, mirror)
        if trial.refit:
            split = split.without_validation()
        if model_info(trial.config.model).kind == "kernel":
            found = _machine(trial, graphs, split, kernels, progress)
            seconds: list[float] = []
        else:
            found, seconds = _network(trial, graphs, split)
    measured: Record = {
        "seconds": round(time.perf_counter() - start, 3),
        "peak_memory": peak_memory(),
        "processor": processor(),
        "library_code": library_code(),
    }
    if seconds:
        measured["seconds_per_epoch"] = round(statistics.median(seconds), 5)
    measured["finished"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {
        **known,
        "status": "done",
        **found,
        "measured": measured,
    }


def failed_record(trial: Trial, threads: int, error: str, reached: Record | None = None) -> Record:
    """Return the record of a trial that could not be finished.

    Args:
        trial: the trial.
        threads: number of threads.
        error: the traceback.
        reached: what it had used, and might have used, if it ran out of resources.
    """
    # Where things lie on this machine is nobody else's business.
    error = re.sub(r'File "[^"]*?((?:kergnn|site-packages)/[^"]*)"', r'File "\1"', error)
    error = error.replace(trial.config.dataset, trial.dataset)
    return {
        **describe(trial, threads),
        "status": "failed" if reached is None else "oor",
        **({} if reached is None else {"reached": reached}),
        "error": error.strip().splitlines()[-1],
        "traceback": error,
        "measured": {"finished": datetime.now(timezone.utc).isoformat(timespec="seconds")},
    }


def describe(trial: Trial, threads: int) -> Record:
    """Return what is known of a trial before it runs."""
    config = trial.public_config
    return {
        "format": FORMAT,
        "key": trial.key,
        "kind": "assessment" if trial.assess else "selection",
        **({"refit": True} if trial.refit else {}),
        "dataset": trial.dataset,
        "fingerprint": trial.fingerprint,
        "split": trial.split,
        "split_hash": trial.split_hash,
        "model": config.model,
        "features": config.features,
        "seed": config.seed,
        "config_hash": config.hash,
        "config": config.to_dict(),
        "engine": os.environ.get("KERGNN_ENGINE") or "auto",
        "threads": threads,
        "versions": software_versions(),
    }


def train(config: RunConfig, development: Development) -> tuple[Trainer, Features]:
    """Train one configuration and restore the epoch that is kept."""
    trainer, features = prepare_trainer(config, development)
    trainer.run()
    return trainer, features


def _network(trial: Trial, graphs: GraphSet, split: Split) -> tuple[Record, list[float]]:
    """Train a network; returns what was found and the seconds of every epoch."""
    fold = prepare_fold(trial.fold_key, trial.config, graphs, split)
    trainer, features = train(trial.config, fold.development)
    state = trainer.state
    columns = [name for name in state.history[0] if name not in ("epoch", "seconds")]
    found = {
        "metric": trainer.config.metric,
        "best_epoch": state.best_epoch,
        "epochs": state.epoch,
        "validation": state.best_figures,
        "history": {name: [_short(row[name]) for row in state.history] for name in columns},
    }
    if trial.assess:
        probabilities = predict_probabilities(trainer.model, fold.with_test(features), split.test)
        found |= _test(probabilities, graphs, split)
    return found, [row["seconds"] for row in state.history]


def _machine(
    trial: Trial,
    graphs: GraphSet,
    split: Split,
    kernels: Path | None,
    progress: Callable[[str], None],
) -> Record:
    """Fit a support vector machine on a Gram matrix."""
    config = trial.config
    x = fit_features(config, graphs, split.train)(graphs)
    name = f"Gram matrix of {config.model}"

    def share(done: int, total: int) -> None:
        progress(f"{name}: {100 * done // total} %")

    K = gram_matrix(config, graphs, x, split.train, kernels, share)
    K = K[:, split.train]
    machine = fit_machine(config, K[split.train], graphs.y[split.train], graphs.num_classes)
    found: Record = {"metric": config.metric, "validation": {}}
    if len(split.validation):
        known, y = class_ranking(machine, K[split.validation]), graphs.y[split.validation]
        figures = {**metrics(known, y), "loss": log_loss(known, y)}
        if config.metric not in figures:
            raise ValueError(f"metric is {config.metric!r}: the validation part has one class only")
        found["validation"] = figures
    if trial.assess:
        found |= _test(class_ranking(machine, K[split.test]), graphs, split)
    return found


def _test(probabilities: Tensor, graphs: GraphSet, split: Split) -> Record:
    truth = graphs.y[split.test]
    return {
        "test": metrics(probabilities, truth),
        "class_names": list(graphs.class_names),
        "predictions": {
            graphs.task: split.test.tolist(),
            "true": truth.tolist(),
            "predicted": probabilities.argmax(1).tolist(),
            "probabilities": [[_short(p) for p in row] for row in probabilities.tolist()],
        },
    }


def _short(number: float) -> float | None:
    """Round; JSON has no number for what is not finite."""
    return float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None


def _data(trial: Trial, mirror: Path | None) -> tuple[GraphSet, Split]:
    """Return the data and the split, if they still are what the trial was made for."""
    graphs, model = _load(trial.config.dataset, mirror), trial.config.model
    if fingerprint(model, graphs) != trial.fingerprint:  # of a file that has changed since
        _load.cache_clear()
        graphs = _load(trial.config.dataset, mirror)
    split = find_split(trial.config, graphs, mirror)
    if (fingerprint(model, graphs), split.hash) != (trial.fingerprint, trial.split_hash):
        raise DataError(f"{trial.config.dataset}: the data or their splits have changed")
    return graphs, split


@lru_cache(maxsize=1)
def _load(dataset: str, mirror: Path | None) -> GraphSet:
    """Load a data set once for all trials of a process."""
    return load_graphs(dataset, mirror)
