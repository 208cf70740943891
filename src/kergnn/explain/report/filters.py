"""The gallery of filters: cards with pictures, importance, shapes and matches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import networkx as nx
import torch
from torch import Tensor

from kergnn.explain.drawing import label_colors
from kergnn.explain.filters import (
    Importance,
    filter_graphs,
    filter_importance,
    group_isomorphic,
    ranked,
)
from kergnn.explain.layout import label_names
from kergnn.explain.matches import Match, best_matches, count_occurrences, shape, structures
from kergnn.explain.report.pictures import Picture, picture
from kergnn.explain.subject import Subject

# The report of a large set must not take longer than its training.
_NODES_MATCHED = 20_000
_GRAPHS_SEARCHED = 100
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class MatchView:
    """A real ego-graph that a filter responds to."""

    caption: str
    picture: Picture


@dataclass(frozen=True)
class FilterCard:
    """A filter: its picture and what is known of it."""

    id: str
    kernel: str
    shape: str
    group: int
    alike: int
    importance: Importance
    drop_bar: float
    contribution_bar: float
    share: float | None
    picture: Picture
    matches: list[MatchView]


@dataclass(frozen=True)
class Layer:
    """The filters of a layer, the most important first, their shapes, and in how many graphs these
    were looked for.
    """

    number: int
    cards: list[FilterCard]
    shapes: list[tuple[str, int]]
    searched: int


def shown_layers(subject: Subject, threshold: float) -> list[Layer]:
    """Return all filters with their importance, shapes and matches."""
    model, batches, graphs = subject.model, subject.batches, subject.graphs
    metric = subject.run.config.metric
    importance = filter_importance(model, batches, subject.split.validation, metric)
    drawn = filter_graphs(model, threshold, subject.one_hot_names, subject.one_hot_frequency)
    part = _some_graphs(subject)
    matches = best_matches(model, batches, part, count=2)
    searched = structures(graphs, part[:_GRAPHS_SEARCHED].tolist())
    colors = label_colors(label_names(graphs) or subject.one_hot_names or [])
    shares: list[tuple[nx.Graph, float]] = []
    layers = []
    for number, pictures in enumerate(drawn):
        groups = group_isomorphic(pictures)
        group_of = {i: k for k, group in enumerate(groups) for i in group}
        share = {i: _share(pictures[group[0]], searched, shares) for group in groups for i in group}
        most_drop = max(max(abs(one.drop) for one in importance[number]), 1e-9)
        most = max(max(one.contribution for one in importance[number]), 1e-9)
        cards = [
            FilterCard(
                id=f"{number + 1}.{one.index + 1}",
                kernel=pictures[one.index].graph["kernel"],
                shape=str(shape(pictures[one.index])),
                group=group_of[one.index],
                alike=len(groups[group_of[one.index]]) - 1,
                importance=one,
                drop_bar=abs(one.drop) / most_drop,
                contribution_bar=one.contribution / most,
                share=share[one.index],
                picture=_filter_picture(pictures[one.index], colors),
                matches=[
                    _match_view(subject, match, colors) for match in matches[number][one.index]
                ],
            )
            for one in ranked(importance[number])
        ]
        shapes = Counter(card.shape for card in cards).most_common()
        layers.append(Layer(number + 1, cards, shapes, len(searched)))
    return layers


def _some_graphs(subject: Subject) -> Tensor:
    """Return training graphs, not too many nodes in all, drawn once for all."""
    if subject.graphs.task == "node":
        return torch.arange(subject.graphs.num_graphs)
    part = subject.split.train
    part = part[torch.randperm(len(part), generator=torch.Generator().manual_seed(0))]
    within = subject.graphs.size[part].cumsum(0) <= _NODES_MATCHED
    return part[: max(int(within.sum()), 1)]


def _share(
    pattern: nx.Graph, graphs: list[nx.Graph], known: list[tuple[nx.Graph, float]]
) -> float | None:
    """Return the share of graphs that contain a pattern, looked for once for each shape."""
    if pattern.number_of_edges() == 0:
        return None
    for other, share in known:
        if nx.faster_could_be_isomorphic(pattern, other) and nx.is_isomorphic(pattern, other):
            return share
    share = count_occurrences(pattern, graphs) / len(graphs)
    known.append((pattern, share))
    return share


def _filter_picture(graph: nx.Graph, colors: dict[str, str]) -> Picture:
    weights = [w for *_, w in graph.edges(data="weight")]
    most = max(weights, default=1.0)
    nodes = [graph.nodes[node] for node in graph]
    colors = {**colors, **{f"{_MINUS}{name}": color for name, color in colors.items()}}
    texts = [("" if n.get("sign", 1) > 0 else _MINUS) + n.get("label", "") for n in nodes]
    return picture(
        graph,
        texts,
        colors,
        130.0,
        96.0,
        unit=34.0,
        strength=[n["strength"] for n in nodes],
        weights=[w / most for w in weights],
        molecule=False,
    )


def _match_view(subject: Subject, match: Match, colors: dict[str, str]) -> MatchView:
    ego = subject.batches.ego
    nodes, _, edge_index = ego[match.node]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(nodes)))
    graph.add_edges_from(edge_index.T.tolist())
    labels = subject.node_labels(nodes)
    g = int(subject.graphs.graph_of[match.node])
    node = match.node - int(subject.graphs.ptr[g])
    caption = f"node {node}" if len(subject.graphs.size) == 1 else f"graph {g}, node {node}"
    return MatchView(f"{caption}: {match.value:.2f}", picture(graph, labels, colors, 100.0, 76.0))
