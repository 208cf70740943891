"""The measurements as tables of ratios and as a plot."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table


def format_tables(record: dict[str, Any]) -> list[Table]:
    """Return the tables that the command prints."""
    tables = [_epochs(record)]
    if any("peak_bytes" in found for found in _contenders(record)):
        tables.append(_memory(record))
    if any("layer" in entry for entry in record["datasets"].values()):
        tables.append(_layers(record))
    if "startup" in record:
        tables.append(_startup(record["startup"]))
    if record["scaling"]:
        tables.append(_scaling(record["scaling"]))
    return tables


def _epochs(record: dict[str, Any]) -> Table:
    return _by_contender(
        record,
        "Training epoch, or Gram matrix and machine of a kernel "
        "(median seconds; ratio to PyG's GIN of the same depth)",
        lambda found, _: f"{found['median_seconds']:.3f} ({found['ratio_to_gin']:.2f})",
    )


def _memory(record: dict[str, Any]) -> Table:
    def cell(found: dict[str, Any], gin: dict[str, Any]) -> str:
        own, base = found.get("peak_bytes"), gin.get("peak_bytes")
        return f"{own / 2**20:.0f} ({own / base:.2f})" if own and base else ""

    return _by_contender(
        record, "Peak memory of an epoch (MiB; ratio to PyG's GIN of the same depth)", cell
    )


def _by_contender(
    record: dict[str, Any], title: str, cell: Callable[[dict[str, Any], dict[str, Any]], str]
) -> Table:
    """Return a table with a column for every contender; a cell is made of its figures and GIN's."""
    epochs = [entry["epoch"] for entry in record["datasets"].values()]
    names = dict.fromkeys(name for depths in epochs for found in depths.values() for name in found)
    table = Table(title=title)
    for column in ("data set", "layers", *names):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for dataset, entry in record["datasets"].items():
        for num_layers, found in entry["epoch"].items():
            cells = [cell(found[name], found["GIN"]) if name in found else "" for name in names]
            table.add_row(dataset, num_layers, *cells)
    return table


def _contenders(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures of every contender, of all sets and depths."""
    epochs = [entry["epoch"] for entry in record["datasets"].values()]
    return [found for depths in epochs for names in depths.values() for found in names.values()]


def _layers(record: dict[str, Any]) -> Table:
    table = Table(
        title="One rw layer, forward and backward over the set (times faster than padded)"
    )
    names = ["padded", "torch", "numba", "matrix products"]
    for column in ("data set", *names, "ego-graphs built"):
        table.add_column(column, justify="left" if column == "data set" else "right")
    for dataset, entry in record["datasets"].items():
        if "layer" not in entry:
            continue
        found = entry["layer"]
        cells = [
            f"{found[n]['median_seconds']:.3f} s ({1 / found[n]['ratio_to_padded']:.1f})"
            for n in names
        ]
        table.add_row(dataset, *cells, f"{entry['ego_index_seconds']:.3f} s")
    return table


def _startup(found: dict[str, dict[str, float]]) -> Table:
    table = Table(title="First pass of a layer in a new process (seconds)")
    for column in ("kernel", "nothing compiled", "compiled before"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for kernel, seconds in found.items():
        table.add_row(
            kernel, f"{seconds['compiling_seconds']:.1f}", f"{seconds['warm_seconds']:.2f}"
        )
    return table


def _scaling(points: list[dict[str, Any]]) -> Table:
    table = Table(title="Training step of 2 layers on a random graph of five edges a node")
    for column in ("sweep", "values", "seconds", "log-log slope"):
        table.add_column(column)
    for sweep in dict.fromkeys(p["sweep"] for p in points):
        chosen = [p for p in points if p["sweep"] == sweep]
        table.add_row(
            sweep,
            " ".join(str(p["value"]) for p in chosen),
            " ".join(f"{p['seconds']:.3g}" for p in chosen),
            f"{slope(chosen):.2f}" if all(p["value"] > 0 for p in chosen) else "",
        )
    return table


def slope(points: list[dict[str, Any]]) -> float:
    """Return the slope of log seconds over log value, by least squares."""
    xs = [math.log(p["value"]) for p in points]
    ys = [math.log(p["seconds"]) for p in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    cross = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return cross / sum((x - mean_x) ** 2 for x in xs)


def plot(record: dict[str, Any]) -> bytes:
    """Return an SVG: epoch time relative to GIN, and the growth with the number of nodes."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    bars, line = figure.subplots(1, 2, width_ratios=[2, 1])
    datasets = list(record["datasets"])
    depths = sorted({n for e in record["datasets"].values() for n in e["epoch"]})
    width = 0.8 / max(len(depths), 1)
    for i, depth in enumerate(depths):
        ratios = [
            record["datasets"][d]["epoch"].get(depth, {}).get("KerGNN", {}).get("ratio_to_gin", 0)
            for d in datasets
        ]
        positions = [j + (i - (len(depths) - 1) / 2) * width for j in range(len(datasets))]
        bars.bar(positions, ratios, width, label=f"{depth} layer{'s' if depth != '1' else ''}")
    bars.axhline(1, color="0.3", linewidth=1)
    bars.set_xticks(range(len(datasets)), datasets, rotation=30, ha="right")
    bars.set_ylabel("epoch of KerGNN / epoch of GIN")
    bars.legend(frameon=False)
    points = [p for p in record["scaling"] if p["sweep"] == "num_nodes"]
    if points:
        line.loglog([p["value"] for p in points], [p["seconds"] for p in points], "o-")
        line.set(xlabel="nodes", ylabel="seconds a training step, 2 layers")
        line.set_title(f"slope {slope(points):.2f}", fontsize=10)
    else:
        line.set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
