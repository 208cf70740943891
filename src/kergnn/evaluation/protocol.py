"""The protocol: nested cross-validation with an inner hold-out.

Of the ten outer folds, each is the test part once. The rest is split into a training and a
validation part. In each fold, the configuration with the best validation score is selected, then
trained again ``repeats`` times with other seeds: with the epoch chosen in the same way, or, with
``refit``, on both parts and to its last epoch. The mean test accuracy of these runs is the fold's
score. Mean and standard deviation of the folds' scores are the result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from kergnn.config import ConfigError, RunConfig, hash_json
from kergnn.data import NUM_SPLITS, GraphSet, load_graphs
from kergnn.evaluation.search import SEARCHES, Score, Search, SearchSpace, exhaustive, halving
from kergnn.evaluation.trial import FORMAT, Record, Trial, settings
from kergnn.models import model_info
from kergnn.preparation import check_config, find_split, fingerprint, resolve_config

# What follows the name of a set that is not a public one.
OWN = " (own)"

# Yields the trials that can run now, is sent their records, and returns the record of the fold.
FoldRun: TypeAlias = Generator[list[Trial], list[Record], Record]


@dataclass(frozen=True)
class Fold:
    """One of the outer folds, by the hashes of its content."""

    dataset: str
    number: int
    split: str
    split_hash: str
    fingerprint: str

    def trial(self, config: RunConfig, seed: int) -> Trial:
        """Return the selection trial of a configuration in this fold."""
        config = config.replace({"fold": self.number, "seed": seed})
        return Trial(config, self.dataset, self.fingerprint, self.split, self.split_hash)

    def assessment(self, config: RunConfig, seed: int, refit: bool = False) -> Trial:
        """Return the trial that predicts the test part; on demand it trains on all else."""
        if refit and model_info(config.model).kind != "kernel":
            config = config.replace({"keep_epoch": "last"})
        return replace(self.trial(config, seed), assess=True, refit=refit)


@dataclass(frozen=True)
class Plan:
    """An evaluation: the configurations to select from, in each of the folds.

    Args:
        dataset: name of the data set; that of one's own says so.
        task: ``"graph"`` or ``"node"``.
        model: name of the model.
        fingerprint: hash of the data.
        configs: the resolved configurations.
        searched: the keys in which the configurations differ.
        search: ``"grid"``, ``"random"`` or ``"halving"``.
        folds: the outer folds that are run.
        splits: a hash of all ten splits.
        repeats: number of trainings of the selected configuration.
        seed: seed of the selection trials; those after it are for the repeats.
        refit: whether the selected configuration is trained on the validation part as well.
    """

    dataset: str
    task: str
    model: str
    fingerprint: str
    configs: tuple[RunConfig, ...]
    searched: tuple[str, ...]
    search: str
    folds: tuple[Fold, ...]
    splits: str
    repeats: int
    seed: int
    refit: bool = False

    @property
    def key(self) -> str:
        """A hash of all but the number of folds, so that an evaluation can grow by folds."""
        return hash_json(
            {
                "format": FORMAT,
                "splits": self.splits,
                "configs": [settings(config) for config in self.configs],
                "fingerprint": self.fingerprint,
                "search": self.search,
                "repeats": self.repeats,
                "seed": self.seed,
                **({"refit": True} if self.refit else {}),
            }
        )

    def new_search(self) -> Search:
        """Return a search that has not begun."""
        return halving(self.configs) if self.search == "halving" else exhaustive(self.configs)

    @property
    def trials_per_fold(self) -> int:
        """Number of trials of a fold, selection and assessment."""
        count, search = self.repeats, self.new_search()
        configs = next(search)
        while True:
            count += len(configs)
            try:
                configs = search.send([(0.0, 0.0)] * len(configs))
            except StopIteration:
                return count


def make_plan(
    dataset: str,
    space: SearchSpace,
    model: str = "kergnn",
    search: str = "grid",
    trials: int | None = None,
    folds: int = NUM_SPLITS,
    repeats: int = 3,
    seed: int = 0,
    mirror: Path | None = None,
    refit: bool = False,
) -> Plan:
    """Load the data and lay out an evaluation.

    Args:
        dataset: a named set or a path.
        space: the values that are searched.
        model: name of the model.
        search: ``"grid"`` for all combinations; ``"random"`` for ``trials`` of them; ``"halving"``
            for successive halving of all, or of ``trials`` of them.
        trials: number of configurations that are drawn.
        folds: how many of the ten folds, from the first.
        repeats: number of trainings of the selected configuration; 0 to leave the test parts
            alone and learn only how configurations do on the validation parts.
        seed: seed of everything.
        mirror: folder with copies of the public sets.
        refit: train the selected configuration on the training and the validation part, and keep
            its last epoch.
    """
    if search not in SEARCHES:
        raise ConfigError(f"search is {search!r}: it must be one of {', '.join(SEARCHES)}")
    if search == "random" and trials is None:
        raise ConfigError("--search random needs --trials: how many configurations are drawn")
    if search == "grid" and trials is not None:
        search = "random"
    for name, value, least, most in (
        ("folds", folds, 1, NUM_SPLITS),
        ("repeats", repeats, 0, 1000),
        ("trials", trials, 1, 10**6),
        ("seed", seed, 0, 2**31),
    ):
        if value is not None and not least <= value <= most:
            raise ConfigError(f"{name} is {value}: it must be from {least} to {most}")
    graphs = load_graphs(dataset, mirror)
    base = RunConfig(dataset=dataset, model=model)
    if graphs.task == "node":  # 60, 20 and 20 %, unless the space says otherwise
        base = base.replace({"splits": "drawn"})
    drawn = space.grid(base) if trials is None else space.sample(base, trials, seed)
    configs = tuple(dict.fromkeys(resolve_config(config, graphs) for config in drawn))
    for config in configs:
        check_config(config, graphs)
    named = stored_name(dataset, graphs)
    ten = [_fold(configs[0], graphs, named, number, mirror) for number in range(NUM_SPLITS)]
    return Plan(
        dataset=named,
        task=graphs.task,
        model=model,
        fingerprint=fingerprint(model, graphs),
        configs=configs,
        searched=_differing(configs),
        search=search,
        folds=tuple(ten[:folds]),
        splits=hash_json([fold.split_hash for fold in ten])[:16],
        repeats=repeats,
        seed=seed,
        refit=refit,
    )


def stored_name(dataset: str, graphs: GraphSet) -> str:
    """Return what a data set is called in a store: one's own never has the name of a public one."""
    return f"{graphs.name}{OWN}" if Path(dataset).exists() else graphs.name


def run_fold(fold: Fold, search: Search, repeats: int, seed: int, refit: bool = False) -> FoldRun:
    """Select a configuration by its validation scores, then assess it.

    Selection sees nothing but the scores of selection trials, which have no test part.
    """
    selection: list[Trial] = []
    failed: dict[str, str] = {}
    configs = next(search)
    while True:
        trials = [fold.trial(config, seed) for config in configs]
        records = yield trials
        selection += trials
        failed |= _failures(records)
        try:
            configs = search.send([validation_score(record) for record in records])
        except StopIteration as stop:
            selected: RunConfig | None = stop.value
            break
    assessment, runs = [], []
    if selected is not None and repeats:
        assessment = [fold.assessment(selected, seed + 1 + r, refit) for r in range(repeats)]
        runs = yield assessment
        failed |= _failures(runs)
    done = bool(runs) and all(run["status"] == "done" for run in runs)
    chosen = "selected" if selected is not None and not repeats else "failed"
    return {
        "fold": fold.number,
        "split": fold.split,
        "split_hash": fold.split_hash,
        "status": "done" if done else chosen,
        "test": mean_figures([run["test"] for run in runs]) if done else None,
        "accuracies": [run["test"]["accuracy"] for run in runs] if done else [],
        "config": selected and fold.assessment(selected, seed, refit).public_config.to_dict(),
        "selection": [trial.key for trial in selection],
        "assessment": [trial.key for trial in assessment],
        "failed": failed,
    }


def _failures(records: list[Record]) -> dict[str, str]:
    """Return what is not done: its key, and whether it failed or ran out of resources."""
    return {record["key"]: record["status"] for record in records if record["status"] != "done"}


def validation_score(record: Record) -> Score:
    """Return what a trial is selected by: its metric, and minus the loss where metrics tie.

    There is none of a trial that failed or had no validation part.
    """
    if record["status"] != "done" or not record["validation"]:
        return None
    score = record["validation"][record["metric"]], -record["validation"]["loss"]
    return score if all(map(math.isfinite, score)) else None


def summarize(plan: Plan, folds: list[Record], trials: list[Record], measured: Record) -> Record:
    """Return the record of an evaluation."""
    folds = sorted(folds, key=lambda fold: int(fold["fold"]))
    scores = [fold["test"]["accuracy"] for fold in folds if fold["status"] == "done"]
    return {
        "format": FORMAT,
        "key": plan.key,
        "dataset": plan.dataset,
        "task": plan.task,
        "model": plan.model,
        "fingerprint": plan.fingerprint,
        "search": plan.search,
        "num_configs": len(plan.configs),
        "searched": {key: _values(plan.configs, key) for key in plan.searched},
        "repeats": plan.repeats,
        "seed": plan.seed,
        **({"refit": True} if plan.refit else {}),
        "mean": statistics.fmean(scores) if scores else None,
        "std": statistics.pstdev(scores) if len(scores) > 1 else None,
        "folds_done": len(scores),
        "folds_failed": sum(fold["status"] == "failed" for fold in folds),
        "trials_failed": _count(folds, "failed"),
        "trials_out_of_resources": _count(folds, "oor"),
        "constant_runs": sum(map(_is_constant, trials)),
        "validation": validation_scores(plan, trials),
        "folds": folds,
        "measured": measured,
    }


def validation_scores(plan: Plan, trials: list[Record]) -> list[Record]:
    """Return for every configuration its searched values and its validation scores by split.

    Halving gives most of them too few epochs to compare, so then there are none.
    """
    found: dict[str, Record] = {}
    for trial in trials if plan.search != "halving" else ():
        score = validation_score(trial)
        if trial["kind"] == "selection" and score is not None:
            values = {key: trial["config"].get(key) for key in plan.searched}
            row = found.setdefault(hash_json(values), {"values": values, "scores": {}})
            row["scores"][trial["split"]] = score[0]
    return list(found.values())


def _is_constant(trial: Record) -> bool:
    """Whether a run has predicted a single class for a test part of several."""
    found = trial.get("predictions")
    return found is not None and len({*found["predicted"]}) == 1 < len({*found["true"]})


def _count(folds: list[Record], status: str) -> int:
    return sum(list(fold["failed"].values()).count(status) for fold in folds)


def _fold(config: RunConfig, graphs: GraphSet, name: str, number: int, mirror: Path | None) -> Fold:
    split = find_split(config.replace({"fold": number}), graphs, mirror)
    return Fold(name, number, split.name, split.hash, fingerprint(config.model, graphs))


def _differing(configs: tuple[RunConfig, ...]) -> tuple[str, ...]:
    names = dict.fromkeys(key for config in configs for key in config.to_dict())
    return tuple(name for name in names if len(_values(configs, name)) > 1)


def _values(configs: tuple[RunConfig, ...], key: str) -> list[Any]:
    return list(dict.fromkeys(config.to_dict().get(key) for config in configs))


def mean_figures(figures: list[dict[str, float]]) -> dict[str, float]:
    """Return the means of those figures that all have."""
    common = [name for name in figures[0] if all(name in other for other in figures)]
    return {name: math.fsum(f[name] for f in figures) / len(figures) for name in common}
