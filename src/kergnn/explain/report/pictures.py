"""The geometry of the report's pictures: places in pixels, colours by name, polylines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from kergnn.explain.layout import are_atoms, layout


@dataclass(frozen=True)
class Spot:
    """A node of a picture: its place, size, text and colour."""

    x: float
    y: float
    r: float
    text: str = ""
    color: str = ""


@dataclass(frozen=True)
class Line:
    """An edge of a picture: the numbers of its ends and how wide it is."""

    a: int
    b: int
    width: float


@dataclass(frozen=True)
class Picture:
    """A graph as an SVG draws it."""

    width: float
    height: float
    spots: list[Spot]
    lines: list[Line]

    @property
    def lettered(self) -> bool:
        """Whether the nodes are large enough for text."""
        return any(spot.r >= 6 for spot in self.spots)


@dataclass(frozen=True)
class Chart:
    """A line chart: polylines and ticks, as an SVG draws them."""

    title: str
    lines: list[tuple[str, str]]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    marker: float


def picture(
    graph: nx.Graph,
    labels: Sequence[str],
    colors: dict[str, str],
    width: float,
    height: float,
    unit: float = 30.0,
    strength: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    shrink: bool = False,
    molecule: bool = True,
) -> Picture:
    """Return a graph fitted into a box; edges are at most ``unit`` pixels long.

    Args:
        graph: the graph.
        labels: a text for every node.
        colors: a colour for every text.
        width: width of the box.
        height: height of the box.
        unit: length of an edge, if the box is large enough.
        strength: sizes of the nodes, relative to the largest.
        weights: widths of the edges, relative to the largest.
        shrink: whether the box is only as high as it must be.
        molecule: whether it is laid out as a molecule if all texts are chemical symbols.
    """
    place = layout(graph, labels if molecule and are_atoms(labels) else None)
    points = np.array([place[node] for node in graph]).reshape(-1, 2)
    if not len(points):
        return Picture(width, height, [], [])
    points = points * [1, -1]
    low, high = points.min(0), points.max(0)
    span = np.maximum(high - low, 1e-9)
    margin = 14.0
    scale = min(unit, (width - 2 * margin) / span[0], (height - 2 * margin) / span[1])
    box = min(height, span[1] * scale + 2 * margin) if shrink else height
    points = (points - (low + high) / 2) * scale + [width / 2, box / 2]
    radius = float(np.clip(min(0.32 * scale, 0.55 * _nearest(points)), 2.2, 9.5))
    sizes = [1.0] * len(points) if strength is None else [0.6 + 0.4 * s for s in strength]
    spots = [
        Spot(round(x, 1), round(y, 1), round(radius * size, 1), text, colors.get(text, ""))
        for (x, y), text, size in zip(points.tolist(), labels, sizes, strict=True)
    ]
    number = {node: i for i, node in enumerate(graph)}
    widths = [0.4] * graph.number_of_edges() if weights is None else list(weights)
    thin = min(1.0, scale / 20, radius / 6)
    lines = [
        Line(number[a], number[b], round((0.8 + 2.4 * w) * thin, 1))
        for (a, b), w in zip(graph.edges(), widths, strict=True)
    ]
    return Picture(width, round(box, 1), spots, lines)


def _nearest(points: NDArray[Any]) -> float:
    """Return a distance that most nodes keep from the one nearest to them."""
    if len(points) < 2:
        return float("inf")
    found, _ = KDTree(points).query(points, k=2)
    return float(np.quantile(found[:, 1], 0.1))


CHART = (430.0, 208.0, 40.0, 24.0)  # width, height, left and bottom margin


def chart(title: str, series: dict[str, list[float]], best: int, top: float | None) -> Chart:
    """Return curves by epoch, from zero to ``top`` or their largest value."""
    width, height, left, bottom = CHART
    epochs = max(map(len, series.values()))
    highest = top or max(max(values) for values in series.values()) * 1.05 or 1.0

    def x(epoch: float) -> float:
        return round(left + (width - left - 10) * (epoch - 1) / max(epochs - 1, 1), 1)

    def y(value: float) -> float:
        return round(8 + (height - bottom - 8) * (1 - min(value / highest, 1.0)), 1)

    return Chart(
        title,
        [
            (name, " ".join(f"{x(i + 1)},{y(v)}" for i, v in enumerate(values)))
            for name, values in series.items()
        ],
        [(x(e), str(e)) for e in sorted({1, *(_round_steps(epochs))})],
        [(y(v), f"{v:g}") for v in _steps(highest)],
        x(best),
    )


def _round_steps(epochs: int) -> list[int]:
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if epochs / s <= 6)
    return list(range(step, epochs + 1, step))


def _steps(highest: float) -> list[float]:
    raw = highest / 4
    power = 10 ** np.floor(np.log10(raw))
    step = float(next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999))
    return [round(step * i, 10) for i in range(int(highest / step * 1.0001) + 1)]
