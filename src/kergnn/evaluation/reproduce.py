"""Trains a stored fold again and compares: is it what the store says, to the last digit?

Nothing is read from the store but what the trials were and what they gave, and nothing is written.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kergnn.config import ConfigError, RunConfig
from kergnn.data import DataError, load_graphs
from kergnn.evaluation.protocol import mean_figures, stored_name
from kergnn.evaluation.results import stored_results
from kergnn.evaluation.store import ResultStore
from kergnn.evaluation.trial import Record, Trial, run_trial
from kergnn.models import model_info
from kergnn.preparation import fingerprint

# Figures that follow from the predictions, which are compared themselves.
_FOLLOWING = ("balanced_accuracy", "macro_f1", "roc_auc")


@dataclass(frozen=True)
class Row:
    """A figure of a fold, as it is stored and as it came out again.

    Args:
        run: which training, from 0; ``None`` for all of the fold.
        figure: what it is.
        stored: its value in the store.
        again: its value now.
        equal: whether all digits are equal.
    """

    run: int | None
    figure: str
    stored: str
    again: str
    equal: bool


@dataclass(frozen=True)
class Reproduction:
    """What came of training a fold again.

    Args:
        dataset: what the data set is called in the store.
        evaluation: key of the evaluation, the one that counts in the table.
        fold: number of the fold.
        rows: all figures that were compared.
        changed: what is not as it was when the record was made, or not told by the record.
    """

    dataset: str
    evaluation: str
    fold: int
    rows: tuple[Row, ...]
    changed: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether all digits are equal."""
        return all(row.equal for row in self.rows)


def reproduce(
    store: ResultStore,
    dataset: str,
    model: str = "kergnn",
    fold: int = 0,
    run: int | None = None,
    mirror: Path | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Train again what the stored test accuracy of a fold is made of.

    Args:
        store: the results; of several evaluations the one that ``kergnn table`` shows.
        dataset: a named set or a path.
        model: name of the model.
        fold: which of the folds, from 0.
        run: which training of the selected configuration, from 0; by default all.
        mirror: folder with copies of the public sets.
        threads: number of threads; by default as many as then.
        progress: called with how far it is.
    """
    record = _find_evaluation(store, dataset, model, mirror)
    stored_fold = _find_fold(record, fold)
    keys: dict[int, str] = dict(enumerate(stored_fold["assessment"]))
    if run is not None and run not in keys:
        raise ConfigError(f"run is {run}: fold {fold} has runs 0 to {len(keys) - 1}")
    chosen = keys if run is None else {run: keys[run]}
    pairs: dict[int, tuple[Record, Record]] = {}
    # A Gram matrix is computed again too, but once for all runs.
    with tempfile.TemporaryDirectory() as kernels:
        for number, key in chosen.items():
            progress(f"fold {fold}, run {number}")
            stored = store.trial(record["dataset"], key)
            if stored is None:
                raise DataError(f"{store.folder}: trial {key} of fold {fold} cannot be read")
            trial = stored_trial(stored, dataset)
            count = stored["threads"] if threads is None else threads
            pairs[number] = stored, run_trial(trial, mirror, count, Path(kernels), progress)
    rows = [row for number, pair in pairs.items() for row in _compare(number, *pair)]
    if run is None:
        rows += _compare_fold(stored_fold, [new for _, new in pairs.values()])
    changed = dict.fromkeys(text for pair in pairs.values() for text in _changes(*pair))
    return Reproduction(record["dataset"], record["key"], fold, tuple(rows), tuple(changed))


def _find_evaluation(store: ResultStore, dataset: str, model: str, mirror: Path | None) -> Record:
    model_info(model)
    if not store.folder.is_dir():
        raise ConfigError(f"{store.folder}: no such folder; kergnn evaluate writes results")
    records = [result.record for result in stored_results(store) if result.model == model]
    names = list(dict.fromkeys(record["dataset"] for record in records))
    # Before the data are looked for: what is not stored need not be downloaded.
    if not Path(dataset).exists() and dataset.lower() not in map(str.lower, names):
        stored = ", ".join(names) or "no set"
        raise ConfigError(f"dataset is {dataset!r}: {store.folder} has {model} on {stored}")
    graphs = load_graphs(dataset, mirror)
    name = stored_name(dataset, graphs)
    found = [record for record in records if record["dataset"] == name]
    if not found:
        raise ConfigError(f"{store.folder}: no evaluation of {model} on {name}")
    for record in found:
        if record["fingerprint"] == fingerprint(model, graphs):
            return record
    raise DataError(f"{dataset}: not the data of the stored evaluation of {model} on {name}")


def _find_fold(record: Record, number: int) -> Record:
    folds: dict[int, Record] = {fold["fold"]: fold for fold in record["folds"]}
    name = f"the stored evaluation of {record['model']} on {record['dataset']}"
    if number not in folds:
        known = ", ".join(map(str, folds)) or "none"
        raise ConfigError(f"fold is {number}: {name} has the folds {known}")
    if (status := folds[number]["status"]) != "done":
        raise ConfigError(f"fold is {number}: in {name} it is {status!r} and has no test accuracy")
    return folds[number]


def stored_trial(stored: Record, dataset: str) -> Trial:
    """Return the trial of a record; ``dataset`` is where its data are, which no record tells."""
    trial = Trial(
        RunConfig.from_record({**stored["config"], "dataset": dataset}),
        stored["dataset"],
        stored["fingerprint"],
        stored["split"],
        stored["split_hash"],
        assess=True,
        refit=stored.get("refit", False),
    )
    if trial.key != stored["key"]:
        raise DataError(f"trial {stored['key']}: its settings are not those that it is named by")
    return trial


def _compare(run: int, stored: Record, again: Record) -> list[Row]:
    rows = [_row(run, "test accuracy", stored["test"]["accuracy"], again["test"]["accuracy"])]
    rows.append(_row_of_all(run, "test figures", stored["test"], again["test"]))
    if "best_epoch" in again:  # a support vector machine has no epochs
        rows.append(_row(run, "kept epoch", stored["best_epoch"], again["best_epoch"]))
        rows.append(_row_of_all(run, "figures by epoch", stored["history"], again["history"]))
    rows.append(_row_of_all(run, "validation figures", stored["validation"], again["validation"]))
    before, now = stored["predictions"], again["predictions"]
    for figure, key in (
        ("true classes", "true"),
        ("predicted classes", "predicted"),
        ("probabilities", "probabilities"),
    ):
        rows.append(_row_of_many(run, figure, before[key], now[key]))
    return rows


def _compare_fold(stored: Record, again: list[Record]) -> list[Row]:
    """Compare what the evaluation tells of the fold with all of its runs."""
    test = mean_figures([record["test"] for record in again])
    return [
        _row(None, "test accuracy", stored["test"]["accuracy"], test["accuracy"]),
        _row_of_all(None, "test figures", stored["test"], test),
        _row_of_many(
            None,
            "test accuracies",
            stored["accuracies"],
            [record["test"]["accuracy"] for record in again],
        ),
    ]


def _row(run: int | None, figure: str, stored: Any, again: Any) -> Row:
    return Row(run, figure, repr(stored), repr(again), stored == again)


def _row_of_all(run: int | None, figure: str, stored: Record, again: Record) -> Row:
    same = sum(name in stored and _same(name, stored[name], value) for name, value in again.items())
    return Row(run, figure, str(len(stored)), f"{same} the same", same == len(stored) == len(again))


def _same(name: str, stored: Any, again: Any) -> bool:
    """Whether two figures are equal; those that follow from predictions but for their last bits.

    How such a mean is added up has changed since the first records were made.
    """
    if name in _FOLLOWING and isinstance(stored, float) and isinstance(again, float):
        return abs(stored - again) <= 2 * math.ulp(stored)
    return bool(stored == again)


def _row_of_many(run: int | None, figure: str, stored: list[Any], again: list[Any]) -> Row:
    same = sum(a == b for a, b in zip(stored, again, strict=False))
    return Row(run, figure, str(len(stored)), f"{same} the same", stored == again)


def _changes(stored: Record, again: Record) -> list[str]:
    """Tell in which surroundings two records differ, as far as the older one knows them."""
    before, now = _surroundings(stored), _surroundings(again)
    texts = [
        f"{name} was {before[name]} and is {now[name]}"
        for name in now
        if before.get(name) not in (None, now[name])
    ]
    texts += [f"{name} was {before[name]} and is missing" for name in before if name not in now]
    untold = [name for name in now if before.get(name) is None]
    here = " and ".join(f"{name} ({now[name]} here)" for name in untold)
    return [*texts, *([f"the record does not tell its {here}"] if untold else [])]


def _surroundings(record: Record) -> Record:
    return {
        **record["versions"],
        "engine": record["engine"],
        "threads": record["threads"],
        "processor": record["measured"].get("processor"),
        "code of libraries": _told(record["measured"].get("library_code")),
    }


def _told(code: dict[str, str] | None) -> str | None:
    return ", ".join(f"{library} {name}" for library, name in code.items()) if code else None
