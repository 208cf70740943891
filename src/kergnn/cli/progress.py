"""What a person sees of an evaluation: a live line on a terminal, plain lines in a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kergnn._hints import counted
from kergnn.evaluation import Plan, Status
from kergnn.evaluation.results import selected_values
from kergnn.evaluation.trial import Record

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def evaluating(plan: Plan, quiet: bool) -> Iterator[Callable[[Status], None]]:
    """Yield a function that shows the status on standard output."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if quiet:
        yield lambda status: None
        return
    console.print(_intention(plan))
    if not console.is_terminal or console.is_dumb_terminal:
        yield _plain(console)
        return
    bar = [BarColumn(bar_width=console.width - 100)] if console.width >= 110 else []
    with Progress(
        MofNCompleteColumn(),
        *bar,
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        folds = _FoldLines(console)

        def live(status: Status) -> None:
            folds(status)
            progress.update(
                task, completed=status.done, total=status.total, description=_figures(status)
            )

        yield live


def show_evaluation(record: Record, store: Path) -> None:
    """Print the result."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    name = f"{record['dataset']}, {record['model']}"
    if record["mean"] is None:
        console.print(f"{name}: no fold could be finished")
    else:
        spread = "" if record["std"] is None else f" ± {100 * record['std']:.1f}"
        console.print(
            f"{name}: test accuracy {100 * record['mean']:.1f}{spread} % "
            f"({counted(record['folds_done'], 'fold')}, {counted(record['repeats'], 'run')} each)"
        )
    if record["searched"] and record["folds_done"]:
        console.print(f"selected (number of folds): {selected_values(record)}")
    folds = counted(record["folds_failed"], "fold")
    if record["trials_failed"]:
        failed = counted(record["trials_failed"], "trial")
        console.print(f"{failed} failed, {folds} without a result; --retry-failed tries again")
    if record["trials_out_of_resources"]:
        ended = counted(record["trials_out_of_resources"], "trial")
        console.print(f"{ended} out of resources, {folds} without a result")
    if record.get("constant_runs"):
        runs = counted(record["constant_runs"], "run")
        console.print(f"{runs} predicted a single class for a test part of several")
    console.print(f"kergnn table --store {store} shows the most thorough evaluation of each model")


def show_selection(record: Record, metric: str) -> None:
    """Print the validation scores of all configurations, the best first."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    rows = [(fmean(row["scores"].values()), row) for row in record["validation"]]
    name = metric.replace("_", " ")
    console.print(f"{record['dataset']}, {record['model']}: mean validation {name}, by fold")
    # What failed in a fold cannot be compared with what did not.
    for mean, row in sorted(rows, key=lambda pair: (-len(pair[1]["scores"]), -pair[0])):
        scores = " ".join(f"{100 * score:.1f}" for score in row["scores"].values())
        values = ", ".join(f"{key}={value}" for key, value in row["values"].items())
        console.print(f"{100 * mean:.2f} ({scores}) {values}")
    for what in ("failed", "out of resources"):
        number = record[f"trials_{what.replace(' ', '_')}"]
        if number:
            console.print(f"{counted(number, 'trial')} {what}")


def _intention(plan: Plan) -> str:
    keys = ", ".join(plan.searched) or "nothing to select"
    splits = dict.fromkeys((plan.folds[0].split, plan.folds[-1].split))
    return (
        f"{plan.dataset}: {counted(len(plan.folds), 'fold')} ({' to '.join(splits)}), "
        f"{counted(len(plan.configs), 'configuration')} ({plan.search}: {keys}), "
        f"{counted(plan.repeats, 'repeat') if plan.repeats else 'the test parts are left alone'}"
    )


def _plain(console: Console) -> Callable[[Status], None]:
    folds, last = _FoldLines(console), -_SECONDS_BETWEEN_LINES

    def report(status: Status) -> None:
        nonlocal last
        folds(status)
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES or status.done == status.total:
            console.print(f"{status.done} of {status.total} trials done, {_figures(status)}")
            last = time.monotonic()

    return report


class _FoldLines:
    """Prints a line for every fold that was finished since."""

    def __init__(self, console: Console) -> None:
        self.console, self.shown = console, 0

    def __call__(self, status: Status) -> None:
        for fold in status.folds[self.shown :]:
            if fold["status"] == "done":
                runs = ", ".join(f"{100 * a:.1f}" for a in fold["accuracies"])
                score = f"test accuracy {100 * fold['test']['accuracy']:.1f} % ({runs})"
            elif fold["status"] == "selected":
                continue
            else:
                score = "out of resources" if "oor" in fold["failed"].values() else "failed"
            self.console.print(f"fold {fold['fold']} ({fold['split']}): {score}")
        self.shown = len(status.folds)


def _figures(status: Status) -> str:
    parts = [f"{status.running} running"]
    parts += [f"{status.failed} failed"] if status.failed else []
    parts += [f"{counted(len(status.folds), 'fold')} finished"]
    parts += [status.detail] if status.detail else []
    parts += [] if status.best is None else [f"best validation {status.best:.3f}"]
    if status.seconds_left is not None and status.done < status.total:
        parts.append(f"about {_duration(status.seconds_left)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
