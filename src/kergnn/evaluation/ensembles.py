"""What the runs of a fold say together: an ensemble of networks that differ by their seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from kergnn.evaluation.results import Result
from kergnn.evaluation.store import ResultStore
from kergnn.evaluation.trial import Record


def ensemble_results(results: Sequence[Result], store: ResultStore) -> list[Result]:
    """Return for measured networks what the runs of a fold reach together.

    The runs that a fold's score is the mean of vote with their probabilities. So nothing is trained
    or selected anew; but it is another system, of as many networks as there are runs.
    """
    found = []
    for result in results:
        record = result.record
        if result.published or not result.counts or record["repeats"] < 2:
            continue
        if result.model != record["model"]:  # the best of several, under a name of its own
            continue
        if "seconds_per_epoch" not in record["measured"]:  # a kernel machine: all runs are alike
            continue
        folds = [fold for fold in record["folds"] if fold["status"] == "done"]
        scores = [_fold_accuracy(fold, record, store) for fold in folds]
        known = [score for score in scores if score is not None]
        whole = len(known) == len(scores)
        if scores:
            found.append(
                Result(
                    result.task,
                    result.dataset,
                    f"{result.model}, {record['repeats']} networks",
                    statistics.fmean(known) if whole else None,
                    statistics.pstdev(known) if whole and len(known) > 1 else None,
                    len(known),
                    note="an ensemble: the runs of a fold vote with their probabilities"
                    if whole
                    else "trials missing",
                )
            )
    return found


def _fold_accuracy(fold: Record, record: Record, store: ResultStore) -> float | None:
    """Return what the runs of a fold reach together, ``None`` if the store lacks one of them."""
    runs = [store.trial(record["dataset"], key) for key in fold["assessment"]]
    done = [run for run in runs if run is not None and run["status"] == "done"]
    return ensemble_accuracy(done) if len(done) == record["repeats"] else None


def ensemble_accuracy(runs: Sequence[Record]) -> float:
    """Return the test accuracy of the mean of the probabilities that some runs have predicted."""
    voices = [np.array(run["predictions"]["probabilities"], dtype=float) for run in runs]
    votes = np.mean(voices, axis=0)
    right = votes.argmax(1) == np.array(runs[0]["predictions"]["true"])
    return float(right.mean())
