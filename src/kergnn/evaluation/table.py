"""Tables of results, and accuracy against time as a plot."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from kergnn._hints import counted
from kergnn.data import NUM_SPLITS
from kergnn.evaluation.results import (
    SOURCE,
    Comparison,
    Result,
    fixed_values,
    max_epochs,
    selected_values,
)
from kergnn.evaluation.sheets import STYLES, Sheet
from kergnn.evaluation.trial import Record

# By how many times the last value of an axis is the first one: where a decade has its labels.
_TICKS = {
    100: (1,),
    10: (1, 3),
    4: (1, 2, 4),
    0: (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
}
_TITLES = {"graph": "Graph classification", "node": "Node classification"}


def format_table(results: Sequence[Result], style: str = "text", with_details: bool = True) -> str:
    """Return results as a table: test accuracy in per cent, mean ± standard deviation.

    Args:
        results: the results, in the order of their rows and columns. One that does not count is
            among the details only.
        style: one of ``STYLES``, or ``"csv"``.
        with_details: whether to tell, in a further table, how the measured results were made.
    """
    if style == "csv":
        return _csv(results)
    sheets = [_matrix(task, results) for task in _TITLES if any(r.task == task for r in results)]
    # An ensemble has no record of its own: its runs are those of the model.
    measured = [result for result in results if result.record]
    sheets += [_details(measured)] if with_details and measured else []
    return STYLES[style](sheets)


def _matrix(task: str, results: Sequence[Result]) -> Sheet:
    """Return models by data sets, as in the paper."""
    mine = [result for result in results if result.task == task and result.counts]
    datasets = list(dict.fromkeys(result.dataset for result in mine))
    models = list(dict.fromkeys((result.model, result.published) for result in mine))
    found = {(result.model, result.published, result.dataset): result for result in mine}
    # Neither a quick look at a few folds nor an ensemble, which has no record, competes.
    single = [r for r in mine if r.published or r.record]
    whole = [r for r in single if r.mean is not None and r.folds == NUM_SPLITS]
    best = {r.dataset: r.mean for r in sorted(whole, key=lambda r: r.mean or 0)}
    rows, bold = [], set()
    for i, (model, published) in enumerate(models):
        row = [model, "published" if published else "measured"]
        for j, dataset in enumerate(datasets):
            result = found.get((model, published, dataset))
            row.append(_accuracy(result))
            if result in whole and result.mean == best[dataset]:
                bold.add((i, j + 2))
        rows.append(row)
    title = f"{_TITLES[task]}: test accuracy in %"
    if any(result.published for result in mine):
        title += f". Published: {SOURCE}"
    return Sheet(title, ["model", "source", *datasets], rows, frozenset(bold))


def _accuracy(result: Result | None) -> str:
    if result is None:
        return ""
    if result.mean is None:
        short = "OOR" if result.record.get("trials_out_of_resources") else "failed"
        return short if result.record else result.note
    digits = 2 if result.published and result.std is None else 1
    text = f"{100 * result.mean:.{digits}f}"
    if result.std is not None:
        text += f" ± {100 * result.std:.1f}"
    if not result.published and result.folds != NUM_SPLITS:
        text += f" ({result.folds} folds)" if result.folds != 1 else " (1 fold)"
    if result.record and result.model != result.record["model"]:  # the best of several
        text += f" ({result.record['model']})"
    return text


def _details(results: Sequence[Result]) -> Sheet:
    head = ["data set", "model", "accuracy", "folds", "features", "configurations"]
    head += ["selected (folds)", "time", "against the best other model", "notes"]
    rows = []
    for result in results:
        record, comparison = result.record, result.comparison
        versus = "no other has two of these folds"
        if comparison is not None:
            versus = (
                f"{100 * comparison.difference:+.1f} to {comparison.model}, "
                f"p = {_p_value(comparison)} ({comparison.folds} folds"
                f"{'' if comparison.alike else '; only one of the two refits'})"
            )
        rows.append(
            [
                result.dataset,
                result.model,
                _accuracy(result).partition(" (")[0],
                str(result.folds),
                _features(record),
                _effort(record),
                "; ".join(filter(None, [selected_values(record), fixed_values(record)])),
                _time(record),
                versus,
                result.note,
            ]
        )
    return Sheet("Measured here: what was selected, and the corrected paired t-test", head, rows)


def _features(record: Record) -> str:
    """Tell the recipes that were selected, the most frequent first."""
    configs = [fold["config"] for fold in record["folds"] if fold["config"]]
    counts = Counter(config["features"] for config in configs)
    return ", ".join(recipe for recipe, _ in counts.most_common())


def _time(record: Record) -> str:
    """Tell how long all trainings took together; nothing where no fold was finished."""
    seconds = record["measured"].get("seconds_of_all_trainings")
    if seconds is None:
        return ""
    minutes = seconds / 60
    return f"{minutes / 60:.1f} h" if minutes >= 60 else f"{minutes:.0f} min"


def _effort(record: Record) -> str:
    """Tell how many configurations were tried, how often and how long the selected one trained."""
    parts = [f"{record['num_configs']} ({record['search']})", counted(record["repeats"], "repeat")]
    if record.get("refit"):
        parts.append("refitted")
    if "seconds_per_epoch" in record["measured"]:  # a kernel machine has no epochs
        parts.append(f"up to {counted(max_epochs(record), 'epoch')}")
    return ", ".join(parts)


def _csv(results: Sequence[Result]) -> str:
    """Return one row for each result."""
    head = ["dataset", "model", "mean", "std", "folds", "source", "task", "note", "repeats"]
    head += ["configurations", "selected", "competitor", "difference", "p_value", "fixed", "counts"]
    head += ["refit"]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for r in results:
        versus = r.comparison
        writer.writerow(
            [
                r.dataset,
                r.model,
                _number(r.mean),
                _number(r.std),
                "" if r.folds is None else r.folds,
                "published" if r.published else "measured",
                r.task,
                r.note,
                r.record.get("repeats", ""),
                r.record.get("num_configs", ""),
                selected_values(r.record) if r.record else "",
                versus.model if versus else "",
                _number(versus.difference) if versus else "",
                _p_value(versus) if versus else "",
                fixed_values(r.record) if r.record else "",
                "yes" if r.counts else "no",
                ("yes" if r.record.get("refit") else "no") if r.record else "",
            ]
        )
    return buffer.getvalue()


def _p_value(comparison: Comparison) -> str:
    return "n/a" if math.isnan(comparison.p_value) else f"{comparison.p_value:.2g}"


def _number(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.2f}"


def plot_accuracy(results: Sequence[Result]) -> bytes | None:
    """Return accuracy against the time of an epoch as an SVG; ``None`` without measured results."""
    timed = [r for r in results if r.mean is not None and "seconds_per_epoch" in _measured(r)]
    datasets = list(dict.fromkeys(r.dataset for r in timed))
    models = list(dict.fromkeys(r.model for r in timed))
    if not datasets:
        return None
    columns = min(3, len(datasets))
    rows, legend_rows = -(-len(datasets) // columns), -(-len(models) // (2 * columns))
    figure = Figure(figsize=(3.6 * columns, 3 * rows + 0.25 * legend_rows), layout="constrained")
    points: dict[str, Artist] = {}
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, dataset in zip(grid.flat, datasets, strict=False):
        for result in (r for r in timed if r.dataset == dataset):
            number = models.index(result.model)
            seconds = _measured(result)["seconds_per_epoch"]
            mean, std = 100 * (result.mean or 0), 100 * (result.std or 0)
            point, _, _ = axes.errorbar(
                seconds,
                mean,
                yerr=std,
                marker="os^Dv"[number // 10 % 5],
                capsize=3,
                color=f"C{number % 10}",
                linestyle="none",
            )
            points[result.model] = point
        axes.set(title=dataset, xlabel="seconds an epoch", ylabel="test accuracy in %")
        axes.set_xscale("log")
        axes.margins(x=0.3)
        first, last = axes.get_xlim()
        ticks = next(ticks for span, ticks in _TICKS.items() if last > span * first)
        axes.xaxis.set_major_locator(LogLocator(subs=ticks))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in grid.flat[len(datasets) :]:
        axes.axis("off")
    figure.legend(points.values(), points, loc="outside lower center", ncols=2 * columns)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _measured(result: Result) -> dict[str, float]:
    measured: dict[str, float] = result.record.get("measured", {})
    return measured
