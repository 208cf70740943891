"""Pictures of filters and graphs as matplotlib figures."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx as data_to_networkx

from kergnn._checks import check_integer
from kergnn.explain.filters import Importance, filter_graphs, ranked
from kergnn.explain.layout import are_atoms, layout
from kergnn.explain.matches import shape
from kergnn.nn import KerGNN

# Okabe and Ito's colours, which people with any colour vision tell apart.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8A8A8A")
_ATOM_COLORS = {
    "C": "#8A8A8A",
    "N": "#0072B2",
    "O": "#D55E00",
    "F": "#56B4E9",
    "Cl": "#009E73",
    "Br": "#CC79A7",
    "I": "#E69F00",
    "S": "#F0E442",
    "H": "#D0D0D0",
}
_LETTERS_AN_INCH = 10  # of a title
_LONGEST_LABEL = 3  # that fits into a node of a filter
NEGATIVE, POSITIVE = "#0072B2", "#D55E00"
_STRENGTH = LinearSegmentedColormap.from_list("strength", ["#FFFFFF", NEGATIVE])
_SIGNED = LinearSegmentedColormap.from_list("signed", [NEGATIVE, "#FFFFFF", POSITIVE])


def label_colors(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for every name; atoms have those that chemists expect, where there is one."""
    distinct = list(dict.fromkeys(names))
    if are_atoms(distinct):
        return {name: _ATOM_COLORS.get(name, PALETTE[-1]) for name in distinct}
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(distinct)}


def draw_graph(
    graph: nx.Graph | Data,
    values: Tensor | Sequence[float] | None = None,
    edge_values: Tensor | Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Return a picture of a graph, its nodes coloured by label or by value.

    Values are coloured alike in all pictures: orange above zero, blue below, the deeper the
    farther from it, relative to the farthest of the picture.

    Args:
        graph: a networkx graph or a PyG ``Data``; of an ``Explanation`` the nodes' contributions
            and the edge mask are drawn, unless values are given.
        values: a number for every node.
        edge_values: a number for every edge (in the order of the graph's edges, or of
            ``edge_index``), drawn as its width.
        labels: a text for every node; chemical symbols are laid out as a molecule.
        title: text above the picture.
    """
    if isinstance(graph, Data):
        values = graph.get("node_contribution") if values is None else values
        edge_values = graph.get("edge_mask") if edge_values is None else edge_values
        if edge_values is not None:
            edge_values = _by_pair(graph, np.asarray(edge_values, dtype=float))
        graph = data_to_networkx(graph, to_undirected=True, remove_self_loops=True)
        if isinstance(edge_values, dict):
            edge_values = [edge_values[min(e), max(e)] for e in graph.edges()]
    if labels is None:
        labels = [str(graph.nodes[node].get("label", "")) for node in graph]
    nodes = graph.number_of_nodes()
    for name, given in (("values", values), ("labels", labels)):
        if given is not None and len(given) != nodes:
            raise ValueError(f"{name} has {len(given)} entries: it must have one for each node")
    place = layout(graph, labels if are_atoms(labels) else None)
    points = np.array([place[node] for node in graph]).reshape(-1, 2)
    span = np.ptp(points, axis=0) + 1.5 if nodes else np.ones(2)
    scale = min(0.45, 9 / max(span))
    width = max(span[0] * scale, 2.2)
    lines = [
        part
        for line in title.splitlines()
        for part in textwrap.wrap(line, int(width * _LETTERS_AN_INCH))
    ]
    figure = Figure(
        figsize=(width, max(span[1] * scale, 1.2) + 0.2 * bool(title) + 0.2 * len(lines)),
        layout="constrained",
    )
    axes = figure.add_subplot()
    _edges(axes, graph, place, edge_values)
    many = nodes > 100
    if values is not None:
        numbers = np.asarray(values, dtype=float)
        finite = numbers[np.isfinite(numbers)]
        most = float(np.abs(finite).max(initial=0)) or 1.0
        shown: dict[str, Any] = {"c": numbers, "cmap": _SIGNED, "vmin": -most, "vmax": most}
    else:
        colors = label_colors(labels)
        shown = {"c": [colors[label] for label in labels]}
    size = 36 if many else 230 * (scale / 0.45) ** 2
    x, y = points.T
    drawn = axes.scatter(x, y, s=size, edgecolors="#333333", linewidths=0.8, zorder=2, **shown)
    if values is not None:
        bar = figure.colorbar(drawn, ax=axes, shrink=0.7, aspect=18, pad=0.01)
        if (finite >= 0).all() or (finite <= 0).all():  # half of the colours are not in use
            bar.ax.set_ylim(*((0, most) if finite.sum() >= 0 else (-most, 0)))
    if not many:
        for label, (x, y) in zip(labels, points, strict=True):
            axes.text(x, y, label, ha="center", va="center", fontsize=8, zorder=3)
    _frame(axes, points)
    if title:
        figure.suptitle("\n".join(lines), fontsize=10)
    return figure


def draw_filters(
    model: KerGNN,
    threshold: float = 0.5,
    names: Sequence[str] | None = None,
    importance: list[list[Importance]] | None = None,
    frequency: Sequence[float] | None = None,
    most: int | None = None,
    columns: int = 8,
) -> Figure:
    """Return a picture of all filters, layer by layer, the most important first.

    Edges are as wide as their weight, nodes as large as the strength of their attributes, relative
    to the filter's largest. A label with a minus sign is one that the node counts against. In
    the place of names that are too long for a node there are letters, which are told below.

    Args:
        model: a trained :class:`~kergnn.KerGNN`.
        threshold: see :func:`~kergnn.explain.filter_graphs`.
        names: see :func:`~kergnn.explain.filter_graphs`.
        importance: what :func:`~kergnn.explain.filter_importance` returned; without it filters
            stand in their own order.
        frequency: see :func:`~kergnn.explain.filter_graphs`.
        most: how many filters of a layer to draw; all by default.
        columns: how many filters stand in a row.
    """
    layers = filter_graphs(model, threshold, names, frequency)
    colors = label_colors(names or [])
    if most is not None:
        check_integer("most", most, minimum=1)
    counts = [len(graphs) if most is None else min(most, len(graphs)) for graphs in layers]
    letters: dict[str, str] = {}  # of long names, in the order of their appearance
    # One axes for all: an axes for each of many filters takes seconds.
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    top = 0.0
    for number, graphs in enumerate(layers):
        axes.text(-0.45, top + 0.1, f"Layer {number + 1}", fontsize=11, fontweight="bold")
        known = None if importance is None else ranked(importance[number])
        for k in range(counts[number]):
            i = k if known is None else known[k].index
            at = np.array([k % columns, top - 0.55 - 1.3 * (k // columns)])
            _cell(axes, graphs[i], at, colors, letters)
            caption = f"{number + 1}.{i + 1}  {shape(graphs[i])}"
            if known is not None:
                drop, contribution = known[k].drop, known[k].contribution
                caption += f"\ndrop {100 * drop:+.1f} pp, logit {contribution:.2f}"
            axes.text(at[0], at[1] - 0.5, caption, ha="center", va="top", fontsize=6)
        top -= 1.3 * -(-counts[number] // columns) + 0.35
    if letters:
        told = [f"{letter} {name}" for name, letter in letters.items()]
        legend = _filled(told, 2 * _LETTERS_AN_INCH * columns)
        text = "\n".join(legend)
        axes.text(-0.45, top + 0.3, text, va="top", fontsize=7, parse_math=False)
        top -= 0.1 * len(legend) + 0.1
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(top + 0.3, 0.35), aspect="equal")
    axes.axis("off")
    figure.set_size_inches(1.35 * columns, 1.35 * (0.05 - top))
    return figure


def to_svg(figure: Figure) -> bytes:
    """Return a figure as an SVG, the same for the same figure, its text as text."""
    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "kergnn"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _cell(
    axes: Any,
    graph: nx.Graph,
    at: NDArray[Any],
    colors: dict[str, str],
    letters: dict[str, str],
) -> None:
    """Draw one filter around a point; ``letters``, which grow, stand for long labels."""
    place = layout(graph)
    if not place:
        axes.text(*at, "no edge", ha="center", va="center", fontsize=7, color="#777777")
        return
    points = np.array([place[node] for node in graph])
    span = max(np.ptp(points, axis=0).max(), 1.0)
    points = at + 0.68 * (points - (points.max(0) + points.min(0)) / 2) / span
    spots = dict(zip(graph, map(tuple, points.tolist()), strict=True))
    _edges(axes, graph, spots, [w for *_, w in graph.edges(data="weight")])
    nodes = [graph.nodes[node] for node in graph]
    strength = np.array([node["strength"] for node in nodes])
    fill = [colors.get(n.get("label"), _STRENGTH(n["strength"])) for n in nodes]
    x, y = points.T
    axes.scatter(x, y, s=60 + 80 * strength, c=fill, edgecolors="#333333", linewidths=0.7, zorder=2)
    for node, spot in zip(nodes, spots.values(), strict=True):
        if "label" in node:
            text = node["label"]
            if len(text) > _LONGEST_LABEL:
                text = letters.setdefault(text, _letters(len(letters)))
            text = text if node["sign"] > 0 else f"\N{MINUS SIGN}{text}"
            size = 5.5 if len(text) < 3 else 4.5
            axes.text(
                *spot, text, ha="center", va="center", fontsize=size, zorder=3, parse_math=False
            )


def _letters(number: int) -> str:
    """Return a, b, ..., z, aa, ab, ... for 0, 1, ..."""
    more, last = divmod(number, 26)
    return (_letters(more - 1) if more else "") + chr(ord("a") + last)


def _filled(entries: Sequence[str], width: int) -> list[str]:
    """Return lines of whole entries, of at most so many letters; a longer entry is cut."""
    lines: list[str] = []
    for entry in entries:
        entry = entry if len(entry) <= width else f"{entry[: width - 1]}\N{HORIZONTAL ELLIPSIS}"
        if lines and len(lines[-1]) + len(entry) + 3 <= width:
            lines[-1] += f",  {entry}"
        else:
            lines.append(entry)
    return lines


def _edges(axes: Any, graph: nx.Graph, place: Any, values: Any) -> None:
    segments = [(place[a], place[b]) for a, b in graph.edges()]
    widths: Any = 1.2 if graph.number_of_nodes() <= 100 else 0.6
    if values is not None and len(segments):
        if len(values) != len(segments):
            raise ValueError(
                f"edge_values has {len(values)} entries: it must have one for each of the "
                f"{len(segments)} edges"
            )
        numbers = np.abs(np.asarray(values, dtype=float))
        widths = 0.5 + 3 * numbers / max(numbers.max(), 1e-12)
    axes.add_collection(LineCollection(segments, linewidths=widths, colors="#555555", zorder=1))


def _by_pair(data: Data, values: NDArray[Any]) -> Any:
    """Return the mean value of the two directions of every edge."""
    found: dict[tuple[int, int], list[float]] = {}
    for (a, b), value in zip(data.edge_index.T.tolist(), values.tolist(), strict=True):
        found.setdefault((min(a, b), max(a, b)), []).append(value)
    return {pair: sum(both) / len(both) for pair, both in found.items()}


def _frame(axes: Any, points: NDArray[Any]) -> None:
    if len(points):
        (left, low), (right, high) = points.min(0) - 0.7, points.max(0) + 0.7
        axes.set(xlim=(left, right), ylim=(low, high))
    axes.set_aspect("equal")
    axes.axis("off")
