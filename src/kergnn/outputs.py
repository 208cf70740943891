"""What a run writes for people and spreadsheets: tables as CSV, curves as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from kergnn.data import GraphSet


def prediction_table(
    run_task: str,
    graphs: GraphSet,
    which: Tensor,
    probabilities: Tensor,
    class_names: Sequence[str],
) -> str:
    """Return predictions as CSV: position, classes by their names, a probability for each class.

    Where the graphs have ids or classes of their own, these are repeated.
    """
    head = ["graph"] if run_task == "graph" else ["graph", "node"]
    with_truth = run_task == graphs.task and bool((graphs.y >= 0).any())
    if graphs.ids:
        head.append("id")
    if with_truth:
        head.append("true")
    head += ["predicted", *(f"p({name})" for name in class_names)]
    rows: list[list[Any]] = [head]
    predicted = probabilities.argmax(1).tolist()
    row: list[Any]
    for i, position in enumerate(which.tolist()):
        if run_task == "graph":
            graph, row = position, [position]
        else:
            graph = int(graphs.graph_of[position])
            row = [graph, position - int(graphs.ptr[graph])]
        if graphs.ids:
            row.append(graphs.ids[graph])
        if with_truth:
            known = int(graphs.y[position])
            row.append(graphs.class_names[known] if known >= 0 else "")
        row += [class_names[predicted[i]], *(f"{p:.6f}" for p in probabilities[i].tolist())]
        rows.append(row)
    return _csv(rows)


def metrics_table(history: list[dict[str, float]]) -> str:
    """Return the figures of every epoch as CSV."""
    rows: list[list[Any]] = [list(history[0])]
    return _csv(rows + [list(row.values()) for row in history])


def _csv(rows: list[list[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def curves(history: list[dict[str, float]], metric: str, best_epoch: int) -> bytes:
    """Return loss and validation metric by epoch as an SVG."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    loss, score = figure.subplots(1, 2)
    epochs = [row["epoch"] for row in history]
    marker = "o" if len(epochs) < 3 else ""
    for name, label in (("train_loss", "training"), ("validation_loss", "validation")):
        loss.plot(epochs, [row[name] for row in history], marker=marker, label=label)
    loss.set(xlabel="epoch", ylabel="loss", ylim=(0, None))
    key = f"validation_{metric}"
    values = [row[key] for row in history]
    score.plot(epochs, values, marker=marker, color="C1", label="validation")
    score.set(xlabel="epoch", ylabel=metric.replace("_", " "), ylim=(0, 1.02))
    for axes in (loss, score):
        axes.axvline(best_epoch, color="0.6", linestyle=":", label="kept epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
