"""Draws the figures of the pages "The idea" and "Explain": ``python docs/make_figures.py FOLDER``.

The numbers in them are computed, on the graphs and filters that the pages use.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kergnn import EgoGraphs, KerGNNClassifier
from kergnn.explain import draw_filters, draw_graph
from kergnn.kernels import random_walk

LABELS = "CCOCCO"
COLORS = {"C": "#4c78a8", "O": "#e4572e"}
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]
PLACES = {0: (0, 1), 1: (0, -1), 2: (1.5, 0), 3: (3.2, 0), 4: (4.9, 0), 5: (6.6, 0)}

X = torch.tensor([[1.0, 0.0] if label == "C" else [0.0, 1.0] for label in LABELS])
EGO = EgoGraphs.from_edge_index(torch.tensor(EDGES).T, num_nodes=6)
B = 1 - torch.eye(3)
W = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
FILTER_LABELS = "CCO"


def adjacency(node: int) -> torch.Tensor:
    """Return the adjacency of an ego-graph, in the order of its members."""
    nodes, _, edges = EGO[node]
    A = torch.zeros(len(nodes), len(nodes))
    A[edges[0], edges[1]] = 1
    return A


def draw_ego_graphs() -> Figure:
    """Draw the graph, the ego-graphs of nodes 0 and 4, and the filter."""
    graph = nx.Graph(EDGES)
    widths = [8.0, 3.0, 4.8, 3.0]
    figure, axes = plt.subplots(1, 4, figsize=(9, 1.9), width_ratios=widths, layout="constrained")
    _draw(axes[0], graph, PLACES, dict(enumerate(LABELS)), "the graph")
    for axis, node in zip(axes[1:3], (0, 4), strict=True):
        members = graph.subgraph(EGO[node][0].tolist())
        labels = {v: LABELS[v] for v in members}
        _draw(axis, members, PLACES, labels, f"ego-graph of node {node}", center=node)
    names = dict(zip("abc", FILTER_LABELS, strict=True))
    places = {"a": (0, 1), "b": (0, -1), "c": (1.5, 0)}
    _draw(axes[3], nx.complete_graph(names), places, names, "a filter")
    return figure


def draw_kernel() -> Figure:
    """Draw how the kernel value of walks of one step is made, for both ego-graphs."""
    K = random_walk(X, EGO, B[None], W[None], num_steps=1)[1, :, 0]
    figure, axes = plt.subplots(2, 3, figsize=(7.5, 5.5), layout="constrained")
    for row, node in zip(axes, (0, 4), strict=True):
        S = X[EGO[node][0]] @ W.T
        moved = adjacency(node) @ S @ B
        columns = [(S, "S"), (moved, "A S B"), (S * moved, "S * (A S B)")]
        for axis, (matrix, title) in zip(row, columns, strict=True):
            _matrix(axis, matrix, EGO[node][0].tolist(), title)
        row[0].set_ylabel(f"ego-graph of node {node}", fontsize=11)
        row[2].set_xlabel(f"sum: $K_1$ = {K[node]:g}", fontsize=12)
    return figure


def draw_blind_spot() -> Figure:
    """Draw a hexagon and two triangles, with the ego-graph of one node of each."""
    hexagon = nx.cycle_graph(6)
    triangles = nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3))
    circle = {v: (1.2 * np.sin(np.pi * v / 3), 1.2 * np.cos(np.pi * v / 3)) for v in range(6)}
    pair = {v: (circle[2 * v % 6][0] + 2.9 * (v > 2), circle[2 * v % 6][1]) for v in range(6)}
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), width_ratios=[1, 1.9], layout="constrained")
    for axis, graph, places, title in (
        (axes[0], hexagon, circle, "a hexagon"),
        (axes[1], triangles, pair, "two triangles"),
    ):
        ego = graph.subgraph([0, *graph.neighbors(0)])
        nx.draw_networkx_edges(ego, places, ax=axis, width=9, edge_color="#f2cf5b")
        _draw(axis, graph, places, dict.fromkeys(graph, "C"), title, center=0)
    return figure


def tree(seed: int, triangle: bool) -> nx.Graph:
    """Return a tree, on request with an edge more that closes a triangle, as in the quick start."""
    graph = nx.random_labeled_tree(12, seed=seed)
    if triangle:
        middle = max(graph, key=graph.degree)
        graph.add_edge(*list(graph.neighbors(middle))[:2])
    return graph


@cache
def trained() -> KerGNNClassifier:
    """Return a classifier that finds triangles."""
    y = ["triangle", "tree"] * 50
    graphs = [tree(seed, kind == "triangle") for seed, kind in enumerate(y)]
    clf = KerGNNClassifier(features="const", hidden_channels=16, epochs=40, random_state=0)
    return clf.fit(graphs, y)


def draw_trained_filters() -> Figure:
    """Draw some of its filters."""
    return draw_filters(trained().model_, most=8)


def draw_explanation() -> Figure:
    """Draw what the nodes of a new graph contribute to its class, more or less than the median."""
    explanation = trained().explain(tree(1000, triangle=True))
    share = explanation.node_contribution
    return draw_graph(explanation, values=share - share.median())


FIGURES: dict[str, Callable[[], Figure]] = {
    "ego-graphs": draw_ego_graphs,
    "kernel": draw_kernel,
    "blind-spot": draw_blind_spot,
    "filters": draw_trained_filters,
    "explanation": draw_explanation,
}


def svg(draw: Callable[[], Figure]) -> str:
    """Return a figure as SVG, the same for the same input."""
    with plt.rc_context({"svg.hashsalt": "kergnn", "font.size": 10}):
        figure = draw()
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
    return buffer.getvalue()


def _draw(
    axis: Axes,
    graph: nx.Graph,
    places: dict,
    labels: dict,
    title: str,
    center: int | None = None,
) -> None:
    colors = [COLORS[labels[v]] for v in graph]
    rings = ["#f2cf5b" if v == center else "white" for v in graph]
    nx.draw_networkx_edges(graph, places, ax=axis, width=1.5)
    nx.draw_networkx_nodes(
        graph, places, ax=axis, node_color=colors, edgecolors=rings, linewidths=3, node_size=420
    )
    names = {v: f"{labels[v]}$_{{{v}}}$" for v in graph}
    nx.draw_networkx_labels(graph, places, names, ax=axis, font_color="white", font_size=10)
    axis.set_title(title, fontsize=11)
    # The same scale in all pictures of a figure, whatever is drawn.
    across, up = zip(*(places[v] for v in graph), strict=True)
    axis.set(xlim=(min(across) - 0.7, max(across) + 0.7), ylim=(min(*up, -1) - 0.6, 1.6))
    axis.set_aspect("equal")
    axis.axis("off")


def _matrix(axis: Axes, matrix: torch.Tensor, nodes: list[int], title: str) -> None:
    axis.imshow(matrix.numpy(), cmap="Blues", vmin=0, vmax=6)
    for (i, j), value in np.ndenumerate(matrix.numpy()):
        axis.text(j, i, f"{value:g}", ha="center", va="center", fontsize=12)
    axis.set_xticks(
        range(3),
        [f"{label}$_{{{name}}}$" for label, name in zip(FILTER_LABELS, "abc", strict=True)],
    )
    axis.set_yticks(range(len(nodes)), [f"{LABELS[v]}$_{{{v}}}$" for v in nodes])
    axis.tick_params(length=0)
    axis.set_title(title, fontsize=11)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        (folder / f"{name}.svg").write_text(svg(draw))
