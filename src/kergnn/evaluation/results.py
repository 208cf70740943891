"""All results beside each other: those in a store, and the published ones."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from scipy import stats

from kergnn._hints import counted
from kergnn.config import RunConfig
from kergnn.data import NUM_SPLITS
from kergnn.evaluation.store import ResultStore
from kergnn.evaluation.trial import Record
from kergnn.preparation import default_dropout

# Where published.csv is from.
SOURCE = "Feng, You, Wang, Tassiulas: KerGNNs, AAAI 2022 (arXiv 2201.00491)"

# Size of the test part over that of the rest: ten folds, or 20 % of the nodes.
_TEST_RATIO = {"graph": 1 / 9, "node": 1 / 4}


# Settings that no result needs to be told of: the protocol's, and what depends on the data.
_TOLD_ELSEWHERE = (
    "dataset",
    "task",
    "model",
    "features",
    "fold",
    "seed",
    "epochs",
    "splits",
    "input_channels",
)


@dataclass(frozen=True)
class Comparison:
    """A paired test against the best other model with results on the same folds.

    Args:
        model: the other model.
        difference: mean difference of the folds' accuracies.
        p_value: two-sided, of the corrected resampled t-test.
        folds: number of common folds.
        alike: whether both refit, or neither.
    """

    model: str
    difference: float
    p_value: float
    folds: int
    alike: bool = True


@dataclass(frozen=True)
class Result:
    """Accuracy of a model on a data set; accuracies are fractions.

    Args:
        task: ``"graph"`` or ``"node"``.
        dataset: name of the data set.
        model: name of the model.
        mean: mean over the folds, ``None`` without one.
        std: standard deviation over the folds.
        folds: number of folds, ``None`` where it is not told.
        published: whether it was read in the paper.
        note: remarks, such as OOR (out of resources) or failures.
        record: the evaluation, for a result of the store.
        comparison: the paired test, for a result of the store.
        counts: whether it is the one that stands for this model on this set.
    """

    task: str
    dataset: str
    model: str
    mean: float | None
    std: float | None = None
    folds: int | None = None
    published: bool = False
    note: str = ""
    record: Record = field(default_factory=dict, repr=False)
    comparison: Comparison | None = None
    counts: bool = True


def published_results() -> list[Result]:
    """Return the two tables of the paper."""
    text = files("kergnn.evaluation").joinpath("published.csv").read_text()
    return [
        Result(
            row["task"],
            row["dataset"],
            row["model"],
            _fraction(row["mean"]),
            _fraction(row["std"]),
            # Ten folds or ten splits throughout.
            folds=NUM_SPLITS if row["mean"] else None,
            published=True,
            note=row["note"],
        )
        for row in csv.DictReader(io.StringIO(text))
    ]


def stored_results(store: ResultStore, every: bool = False) -> list[Result]:
    """Return one result for each data set and model, or all.

    Of several evaluations of the same two the one with most folds counts, of those the one with
    most configurations, most epochs, one that refits, and of those the newest; never the best. The
    note tells of the others.

    Args:
        store: the store.
        every: whether to return the others as well, after the one that counts.
    """
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in store.evaluations():
        key = (record["dataset"], record["fingerprint"], record["model"])
        found.setdefault(key, []).append(record)
    for records in found.values():
        records.sort(key=_rank)
        records.reverse()  # of equals the last one counts
    chosen = {key: records[0] for key, records in found.items()}
    results = []
    for (name, fingerprint, model), records in found.items():
        graphs, _, edges = fingerprint.partition("-")
        # Only some models look at the values of edges, and have a second part for them.
        alike = {key: r for key, r in chosen.items() if key[0] == name}
        same = {key: r for key, r in alike.items() if key[1].partition("-")[0] == graphs}
        # Data that only share their name are different sets.
        shown = name if len(same) == len(alike) else f"{name} {graphs[:6]}"
        if sum(key[2] == model for key in same) > 1:
            shown = f"{shown} {edges[:6]}"
        results += [
            Result(
                record["task"],
                shown,
                model,
                record["mean"],
                record["std"],
                record["folds_done"],
                note=_note(record, len(records) - 1, counts=record is records[0]),
                record=record,
                comparison=_comparison(record, list(same.values())),
                counts=record is records[0],
            )
            for record in (records if every else records[:1])
        ]
    return results


def summarized(results: Sequence[Result]) -> list[Result]:
    """Return KerGNN as measured on each data set, below the best that was published and measured.

    That is the best of all published systems, the best of the paper's KerGNN rows, and the best of
    the competitors that were measured on all folds, the same as those of KerGNN.
    """
    measured = [r for r in results if r.model == "kergnn" and not r.published]
    folds = {r.dataset: _accuracies(r.record).keys() for r in measured}
    others = [
        r
        for r in results
        if not (r.published or r.model == "kergnn")
        and r.folds == NUM_SPLITS
        and folds.get(r.dataset, set()) <= _accuracies(r.record).keys()
    ]
    published = [r for r in results if r.published and r.mean is not None]
    kergnn = [r for r in published if r.model.startswith("KerGNN")]
    return [
        *_best_of(published, "best of all systems"),
        *_best_of(kergnn, "best KerGNN"),
        *_best_of(others, "best competitor"),
        *measured,
    ]


def _best_of(results: Sequence[Result], name: str) -> list[Result]:
    """Return the best result on each data set, under another name; the note tells whose it is."""
    best: dict[str, Result] = {}
    for result in results:
        known = best.get(result.dataset)
        if known is None or (result.mean or 0) > (known.mean or 0):
            best[result.dataset] = result
    return [replace(result, model=name, note=result.model) for result in best.values()]


def selected_values(record: Record) -> str:
    """Tell what was selected: of each searched key the values and in how many folds."""
    parts = []
    for key in record["searched"]:
        counts = Counter(str(fold["config"].get(key)) for fold in record["folds"] if fold["config"])
        chosen = ", ".join(f"{value} ({count})" for value, count in counts.most_common())
        parts.append(f"{key}: {chosen}")
    return "; ".join(parts)


def fixed_values(record: Record) -> str:
    """Tell what was neither searched nor left as it is by default, and the same in all folds."""
    configs = [fold["config"] for fold in record["folds"] if fold["config"]]
    defaults = RunConfig().to_dict() | default_dropout(record["task"])
    known = {*record["searched"], *_TOLD_ELSEWHERE}
    parts = []
    for key, value in (configs[0] if configs else {}).items():
        alike = all(config.get(key) == value for config in configs)
        if alike and key not in known and value != defaults.get(key):
            parts.append(f"{key} = {value}")
    return ", ".join(parts)


def max_epochs(record: Record) -> int:
    """Return the largest number of epochs that a selected configuration allows."""
    return max((fold["config"]["epochs"] for fold in record["folds"] if fold["config"]), default=0)


def corrected_t_test(differences: Sequence[float], test_ratio: float) -> float:
    r"""Return the two-sided p-value of the corrected resampled t-test (Nadeau, Bengio, 2003).

    The training parts of the folds overlap, so the variance of the mean is not
    :math:`\sigma^2 / k` but :math:`(1 / k + n_{test} / n_{train}) \sigma^2`:

    .. math::
        t = \frac{\bar d}{\sqrt{(1 / k + n_{test} / n_{train})\, \sigma^2}}

    with k - 1 degrees of freedom.

    Args:
        differences: the k differences of the folds' scores.
        test_ratio: size of a test part over that of its training part.
    """
    k = len(differences)
    if k < 2:
        return math.nan
    mean, variance = statistics.fmean(differences), statistics.variance(differences)
    if variance <= 1e-12 * mean**2:  # equal differences tell nothing of their spread
        return 1.0 if mean == 0 else math.nan
    t = mean / math.sqrt((1 / k + test_ratio) * variance)
    return float(2 * stats.t.sf(abs(t), k - 1))


def _comparison(record: Record, others: list[Record]) -> Comparison | None:
    mine, found = _accuracies(record), []
    for other in others:
        theirs = _accuracies(other)
        common = sorted(mine.keys() & theirs.keys())
        if other["model"] == record["model"] or len(common) < 2:
            continue
        differences = [mine[split] - theirs[split] for split in common]
        p_value = corrected_t_test(differences, _TEST_RATIO[record["task"]])
        mean = statistics.fmean(differences)
        alike = record.get("refit", False) == other.get("refit", False)
        found.append(Comparison(other["model"], mean, p_value, len(common), alike))
    # Most folds in common first, then the strongest on these.
    return min(found, key=lambda c: (-c.folds, c.difference), default=None)


def _accuracies(record: Record) -> dict[str, float]:
    return {
        fold["split_hash"]: fold["test"]["accuracy"]
        for fold in record["folds"]
        if fold["status"] == "done"
    }


def _rank(record: Record) -> tuple[Any, ...]:
    refit, newest = record.get("refit", False), record["measured"].get("finished", "")
    return record["folds_done"], record["num_configs"], max_epochs(record), refit, newest


def _note(record: Record, others: int, counts: bool) -> str:
    notes = [] if counts else ["does not count: another is as thorough or more"]
    if record["folds_failed"]:
        notes.append(f"{counted(record['folds_failed'], 'fold')} failed")
    if record["trials_failed"]:
        notes.append(f"{counted(record['trials_failed'], 'trial')} failed")
    if record["trials_out_of_resources"]:
        notes.append(f"{counted(record['trials_out_of_resources'], 'trial')} out of resources")
    if record.get("constant_runs"):
        notes.append(f"{counted(record['constant_runs'], 'run')} of one class only")
    if others and counts:
        notes.append(f"{counted(others, 'other evaluation')} in the store")
    return ", ".join(notes)


def _fraction(text: str) -> float | None:
    return float(text) / 100 if text else None
