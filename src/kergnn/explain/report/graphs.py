"""The graphs of the report: panels of nodes and edges, and links to the filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

from kergnn.batches import Batch
from kergnn.explain.attribution import explain
from kergnn.explain.drawing import label_colors
from kergnn.explain.filters import layer_values
from kergnn.explain.layout import label_names
from kergnn.explain.matches import structures
from kergnn.explain.report.pictures import Picture, picture
from kergnn.explain.subject import Subject

# The report of a large set must not take longer than its training.
_MOST_DRAWN = 250
# Small graphs stand four in a row, large ones two.
_SMALL = 80
_SIZES = ((250.0, 300.0, 30.0), (480.0, 380.0, 90.0))


@dataclass(frozen=True)
class Panel:
    """One colouring of a graph: values from 0 to 1, contributions from -1 to 1, for each node."""

    title: str
    values: list[float] | None
    contributions: list[float]


@dataclass(frozen=True)
class GraphCard:
    """A graph (or the neighbourhood of a node) with its panels."""

    id: str
    title: str
    truth: str
    predicted: str
    probability: float
    target: str
    logit: float
    baseline: float
    note: str
    centre: int | None
    drawn: nx.Graph
    picture: Picture
    panels: list[Panel]
    edge_mask: list[float]
    links: dict[str, Any]


def graph_cards(subject: Subject, items: list[int], target: int | None) -> list[GraphCard]:
    """Return the graphs (or nodes) to be shown, with links to the filters they respond to."""
    graphs = subject.graphs
    if graphs.task == "graph":
        views = [_View(subject, item, None) for item in items]
    else:
        inside = [int(graphs.graph_of[node]) for node in items]
        first = [int(graphs.ptr[g]) for g in inside]
        views = [
            _View(subject, g, node - f) for node, g, f in zip(items, inside, first, strict=True)
        ]
    low = [torch.stack([v.values[k].amin(0) for v in views]).amin(0) for k in views[0].layers]
    high = [torch.stack([v.values[k].amax(0) for v in views]).amax(0) for k in views[0].layers]
    return [view.card(f"g{i}", target, low, high) for i, view in enumerate(views)]


class _View:
    """One graph with everything the model makes of it, cut to the nodes that are drawn."""

    def __init__(self, subject: Subject, graph: int, centre: int | None) -> None:
        self.subject, self.graph, self.centre = subject, graph, centre
        self.batch: Batch = subject.batches(torch.tensor([graph]))
        features, values = layer_values(subject.model, self.batch)
        where = (self.batch.batch, 1) if centre is None else ()
        with torch.no_grad():
            logits = subject.model.logits(features, self.batch.ego, *where)
        self.logits = logits[0 if centre is None else centre]
        self.drawn = self._drawn_nodes()
        self.values = [value[self.drawn] for value in values]
        self.features = [feature[self.drawn] for feature in features]
        self.layers = range(len(values))

    def _drawn_nodes(self) -> Tensor:
        """Return the nodes to draw: all of a small graph, otherwise those around a centre."""
        count = self.batch.x.size(0)
        if self.centre is None and count <= _MOST_DRAWN:
            return torch.arange(count)
        (graph,) = structures(self.subject.graphs, [self.graph])
        model = self.subject.model
        hops = None if self.centre is None else model.num_radii * model.num_hops
        start = self.centre
        if start is None:
            start = max(graph, key=graph.degree)
        near = nx.single_source_shortest_path_length(graph, start, cutoff=hops)
        most = _MOST_DRAWN if self.centre is None else 60
        return torch.tensor(sorted(list(near)[:most]))

    def card(
        self, name: str, target: int | None, low: list[Tensor], high: list[Tensor]
    ) -> GraphCard:
        subject, drawn = self.subject, self.drawn
        graphs = subject.graphs
        first = int(graphs.ptr[self.graph])
        probabilities = self.logits.softmax(0)
        predicted = int(probabilities.argmax())
        target = predicted if target is None else target
        found = explain(subject.model, subject.data(self.graph), target=target, index=self.centre)
        position = {node: i for i, node in enumerate(drawn.tolist())}
        edges, mask = _drawn_edges(found, position)
        shown = nx.Graph()
        shown.add_nodes_from(range(len(drawn)))
        shown.add_edges_from(edges)
        labels = subject.node_labels(drawn + first)
        colors = label_colors(label_names(graphs) or [])
        truth = int(graphs.y[self.graph if self.centre is None else first + (self.centre or 0)])
        names = subject.run.class_names
        return GraphCard(
            id=name,
            title=self._title(),
            truth=names[truth] if truth >= 0 else "not known",
            predicted=names[predicted],
            probability=float(probabilities[predicted]),
            target=names[target],
            logit=float(self.logits[target]),
            baseline=float(found.baseline),
            note=self._note(found),
            centre=None if self.centre is None else position[self.centre],
            drawn=shown,
            picture=picture(shown, labels, colors, *_SIZES[len(drawn) > _SMALL], shrink=True),
            panels=self._panels(found),
            edge_mask=[mask[edge] for edge in edges],
            links={
                "ego": [_ego(self.batch, node, position) for node in drawn.tolist()],
                "response": [
                    _percent((value - low[k]) / (high[k] - low[k]).clamp(min=1e-9))
                    for k, value in enumerate(self.values)
                ],
                "labels": labels,
                "nodes": drawn.tolist(),
                "contribution": [round(c, 4) for c in found.node_contribution[drawn].tolist()],
            },
        )

    def _panels(self, found: Data) -> list[Panel]:
        layers = found.layer_contribution[:, self.drawn]
        most = layers.abs().max().clamp(min=1e-12)
        total = found.node_contribution[self.drawn]
        panels = []
        for k, feature in enumerate(self.features):
            size = feature.norm(dim=1)
            relative = (size - size.min()) / (size.max() - size.min()).clamp(min=1e-12)
            panels.append(
                Panel(
                    "Input" if k == 0 else f"Output of layer {k}",
                    None if k == 0 else _rounded(relative),
                    _rounded(layers[k] / most),
                )
            )
        panels.append(Panel("Explanation", None, _rounded(total / total.abs().max().clamp(1e-12))))
        return panels

    def _title(self) -> str:
        ids = self.subject.graphs.ids
        own = f" ({ids[self.graph]})" if ids else ""
        if self.centre is None:
            return f"Graph {self.graph}{own}"
        return f"Node {self.centre}" + ("" if len(self.subject.graphs.size) == 1 else own)

    def _note(self, found: Data) -> str:
        count, drawn = self.batch.x.size(0), len(self.drawn)
        if self.centre is not None:
            sizes = found.node_contribution.abs()
            share = float(sizes[self.drawn].sum() / sizes.sum().clamp(min=1e-12))
            told = "" if share > 0.995 else f", with {100 * share:.0f} % of all contributions"
            return f"its neighbourhood: {drawn} of {count} nodes drawn{told}"
        return "" if drawn == count else f"{drawn} of {count} nodes drawn, around the largest hub"


def _drawn_edges(
    found: Data, position: dict[int, int]
) -> tuple[list[tuple[int, int]], dict[tuple[int, int], float]]:
    """Return the drawn edges, each once, and their mask."""
    mask: dict[tuple[int, int], float] = {}
    for (a, b), value in zip(found.edge_index.T.tolist(), found.edge_mask.tolist(), strict=True):
        if a in position and b in position and a != b:
            pair = (min(position[a], position[b]), max(position[a], position[b]))
            mask[pair] = max(mask.get(pair, 0.0), value)
    most = max([abs(v) for v in mask.values()], default=1.0) or 1.0
    return sorted(mask), {pair: round(abs(value) / most, 2) for pair, value in mask.items()}


def _ego(batch: Batch, node: int, position: dict[int, int]) -> list[int]:
    members = batch.ego[node][0].tolist()
    return [position[m] for m in members if m in position]


def _percent(values: Tensor) -> list[list[int]]:
    rounded: list[list[int]] = (100 * values).round().int().tolist()
    return rounded


def _rounded(values: Tensor) -> list[float]:
    return [round(v, 2) for v in values.tolist()]
