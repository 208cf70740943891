"""Tables of results as text, Markdown, CSV, LaTeX or HTML, and accuracy against time as a plot."""

from __future__ import annotations

import csv
import html
import io
import itertools
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from kergnn.data import NUM_SPLITS
from kergnn.evaluation.results import (
    SOURCE,
    Comparison,
    Result,
    counted,
    fixed_values,
    max_epochs,
    selected_values,
)
from kergnn.evaluation.trial import Record

_WIDEST = 44  # of a cell of text, in characters
_TITLES = {"graph": "Graph classification", "node": "Node classification"}


@dataclass(frozen=True)
class _Sheet:
    """A table of strings with a title; ``bold`` are the cells (row, column) to stress."""

    title: str
    head: list[str]
    rows: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()


def format_table(results: Sequence[Result], style: str = "text", with_details: bool = True) -> str:
    """Return results as a table: test accuracy in per cent, mean ± standard deviation.

    Args:
        results: the results, in the order of their rows and columns.
        style: one of ``STYLES``, or ``"csv"``.
        with_details: whether to tell, in a further table, how the measured results were made.
    """
    if style == "csv":
        return _csv(results)
    sheets = [_matrix(task, results) for task in _TITLES if any(r.task == task for r in results)]
    measured = [result for result in results if not result.published]
    sheets += [_details(measured)] if with_details and measured else []
    return STYLES[style](sheets)


def _matrix(task: str, results: Sequence[Result]) -> _Sheet:
    """Return models by data sets, as in the paper."""
    mine = [result for result in results if result.task == task]
    datasets = list(dict.fromkeys(result.dataset for result in mine))
    models = list(dict.fromkeys((result.model, result.published) for result in mine))
    found = {(result.model, result.published, result.dataset): result for result in mine}
    # A quick look at a few folds does not compete.
    whole = [r for r in mine if r.mean is not None and r.folds == NUM_SPLITS]
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
    return _Sheet(title, ["model", "source", *datasets], rows, frozenset(bold))


def _accuracy(result: Result | None) -> str:
    if result is None:
        return ""
    if result.mean is None:
        short = "OOR" if result.record.get("trials_out_of_resources") else "failed"
        return result.note if result.published else short
    digits = 2 if result.published and result.std is None else 1
    text = f"{100 * result.mean:.{digits}f}"
    if result.std is not None:
        text += f" ± {100 * result.std:.1f}"
    if not result.published and result.folds != NUM_SPLITS:
        text += f" ({result.folds} folds)" if result.folds != 1 else " (1 fold)"
    return text


def _details(results: Sequence[Result]) -> _Sheet:
    head = ["data set", "model", "accuracy", "folds", "features", "configurations"]
    head += ["selected (folds)", "time", "against the best other model", "notes"]
    rows = []
    for result in results:
        record, comparison = result.record, result.comparison
        versus = "no other has two of these folds"
        if comparison is not None:
            versus = (
                f"{100 * comparison.difference:+.1f} to {comparison.model}, "
                f"p = {_p_value(comparison)} ({comparison.folds} folds)"
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
    return _Sheet("Measured here: what was selected, and the corrected paired t-test", head, rows)


def _features(record: Record) -> str:
    """Tell the recipes that were selected, the most frequent first."""
    configs = [fold["config"] for fold in record["folds"] if fold["config"]]
    counts = Counter(config["features"] for config in configs)
    return ", ".join(recipe for recipe, _ in counts.most_common())


def _time(record: Record) -> str:
    """Tell how long all trainings took together."""
    minutes = record["measured"]["seconds_of_all_trainings"] / 60
    return f"{minutes / 60:.1f} h" if minutes >= 60 else f"{minutes:.0f} min"


def _effort(record: Record) -> str:
    """Tell how many configurations were tried, how often and how long the selected one trained."""
    parts = [f"{record['num_configs']} ({record['search']})", counted(record["repeats"], "repeat")]
    if "seconds_per_epoch" in record["measured"]:  # a kernel machine has no epochs
        parts.append(f"up to {counted(max_epochs(record), 'epoch')}")
    return ", ".join(parts)


def _csv(results: Sequence[Result]) -> str:
    """Return one row for each data set and model."""
    head = ["dataset", "model", "mean", "std", "folds", "source", "task", "note", "repeats"]
    head += ["configurations", "selected", "competitor", "difference", "p_value"]
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
            ]
        )
    return buffer.getvalue()


def _p_value(comparison: Comparison) -> str:
    return "n/a" if math.isnan(comparison.p_value) else f"{comparison.p_value:.2g}"


def _number(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.2f}"


def _text(sheets: Sequence[_Sheet]) -> str:
    parts = []
    for sheet in sheets:
        # The best of a column has a star.
        marked = [
            [f"{cell}*" if (i, j) in sheet.bold else cell for j, cell in enumerate(row)]
            for i, row in enumerate(sheet.rows)
        ]
        lines = [line for row in [sheet.head, *marked] for line in _wrapped(row)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(sheet.head))]
        texts = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        note = ["", "* the best of its column"] if sheet.bold else []
        parts.append("\n".join([sheet.title, "", *texts, *note]))
    return "\n\n".join(parts) + "\n"


def _wrapped(row: list[str]) -> list[list[str]]:
    """Cut a row with long cells into several lines."""
    cells = [textwrap.wrap(cell, _WIDEST) or [""] for cell in row]
    return [list(line) for line in itertools.zip_longest(*cells, fillvalue="")]


def _markdown(sheets: Sequence[_Sheet]) -> str:
    parts = []
    for sheet in sheets:
        lines = [sheet.head, ["---"] * len(sheet.head)]
        for i, row in enumerate(sheet.rows):
            cells = [cell.replace("|", "\\|") for cell in row]
            lines.append([f"**{c}**" if (i, j) in sheet.bold else c for j, c in enumerate(cells)])
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"{sheet.title}\n\n{text}\n")
    return "\n".join(parts)


def _latex(sheets: Sequence[_Sheet]) -> str:
    parts = []
    for sheet in sheets:
        lines = [" & ".join(map(_tex, sheet.head)) + r" \\", r"\midrule"]
        for i, row in enumerate(sheet.rows):
            cells = [
                rf"\textbf{{{_tex(cell)}}}" if (i, j) in sheet.bold else _tex(cell)
                for j, cell in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        body = "\n".join([r"\toprule", *lines, r"\bottomrule"])
        parts.append(
            f"% {sheet.title}\n\\begin{{tabular}}{{{'l' * len(sheet.head)}}}\n{body}\n"
            "\\end{tabular}\n"
        )
    return "\n".join(parts)


def _tex(text: str) -> str:
    for character in "\\&%_#$":
        replacement = r"\textbackslash{}" if character == "\\" else f"\\{character}"
        text = text.replace(character, replacement)
    return text.replace("±", r"$\pm$")


def _html(sheets: Sequence[_Sheet]) -> str:
    style = (
        "body{font:14px/1.5 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse;"
        "margin-bottom:2rem}td,th{padding:.25rem .75rem;text-align:left;border-bottom:1px solid "
        "#ddd;vertical-align:top}caption{text-align:left;font-weight:600;padding:.5rem 0}"
    )
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">']
    parts += [f"<title>kergnn results</title><style>{style}</style></head><body>"]
    for sheet in sheets:
        parts += [f"<table><caption>{html.escape(sheet.title)}</caption>", "<thead><tr>"]
        parts += [f"<th>{html.escape(cell)}</th>" for cell in sheet.head]
        parts.append("</tr></thead><tbody>")
        for i, row in enumerate(sheet.rows):
            cells = [
                f"<td><b>{html.escape(cell)}</b></td>"
                if (i, j) in sheet.bold
                else f"<td>{html.escape(cell)}</td>"
                for j, cell in enumerate(row)
            ]
            parts.append(f"<tr>{''.join(cells)}</tr>")
        parts.append("</tbody></table>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


STYLES: dict[str, Callable[[Sequence[_Sheet]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "html": _html,
}


def plot_accuracy(results: Sequence[Result]) -> bytes | None:
    """Return accuracy against the time of an epoch as an SVG; ``None`` without measured results."""
    timed = [r for r in results if r.mean is not None and "seconds_per_epoch" in _measured(r)]
    datasets = list(dict.fromkeys(r.dataset for r in timed))
    models = list(dict.fromkeys(r.model for r in timed))
    if not datasets:
        return None
    columns = min(3, len(datasets))
    rows = -(-len(datasets) // columns)
    figure = Figure(figsize=(3.6 * columns, 3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, dataset in zip(grid.flat, datasets, strict=False):
        for result in (r for r in timed if r.dataset == dataset):
            colour = f"C{models.index(result.model) % 10}"
            seconds = _measured(result)["seconds_per_epoch"]
            mean, std = 100 * (result.mean or 0), 100 * (result.std or 0)
            axes.errorbar(seconds, mean, yerr=std, marker="o", capsize=3, color=colour)
            axes.annotate(result.model, (seconds, mean), xytext=(6, 4), textcoords="offset points")
        axes.set(title=dataset, xlabel="seconds an epoch", ylabel="test accuracy in %")
        axes.set_xscale("log")
        axes.margins(x=0.3)
    for axes in grid.flat[len(datasets) :]:
        axes.axis("off")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _measured(result: Result) -> dict[str, float]:
    measured: dict[str, float] = result.record.get("measured", {})
    return measured
