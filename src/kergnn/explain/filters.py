"""What the filters of a model are, and what becomes of the model without one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import networkx as nx
import torch
from torch import Tensor, nn

from kergnn.batches import Batch, GraphBatches
from kergnn.nn import KerGNN, KerGNNConv, WordMap
from kergnn.prediction import chunks, metrics


@dataclass(frozen=True)
class Importance:
    r"""What becomes of a model when a filter is silenced.

    Silenced means that the filter's kernel value :math:`k_i(v)` is zero for every node v.

    Args:
        layer: the filter's layer, from 0.
        index: its number within the layer, from 0.
        drop: the metric with the filter less the metric without it; negative if it does harm.
        contribution: mean over graphs (or nodes) and classes of how much the logit changes.
    """

    layer: int
    index: int
    drop: float
    contribution: float


def filter_layers(model: nn.Module) -> list[KerGNNConv]:
    """Return the layers of a model that have filters, the first one first."""
    if not isinstance(model, KerGNN):
        raise ValueError(f"model is a {type(model).__name__}: it must be a KerGNN")
    return [conv for conv in model.convs if isinstance(conv, KerGNNConv)]


def filter_graphs(
    model: KerGNN,
    threshold: float = 0.5,
    names: Sequence[str] | None = None,
    frequency: Sequence[float] | None = None,
) -> list[list[nx.Graph]]:
    """Return the filters as graphs, layer by layer.

    An edge stays if its weight is above zero and at least ``threshold`` times the largest of its
    filter; a node stays if one of its edges does. An edge has a ``weight``. A node has its
    ``attributes`` and a ``strength``: their norm, relative to the filter's strongest node.

    With ``names``, a node of the first layer has as ``attributes`` its similarity with an input
    node of every name, the input map included, and as ``label`` the name it responds to most: the
    one with the largest square of the similarity times its ``frequency``, summed to the strength.
    The similarity's ``sign`` is 1 or -1. Only relative signs matter to kernels that are quadratic
    in the attributes (``rw``, ``drw``): there the strongest response of a filter is made positive.

    Args:
        model: a trained :class:`~kergnn.KerGNN`.
        threshold: from 0, every edge, to 1, the strongest only.
        names: names of the input features, where these are one-hot.
        frequency: how often each of them occurs; without it they count alike. What is rare is
            hardly trained, and keeps the similarities it was drawn with.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold!r}: it must be from 0 to 1")
    layers = filter_layers(model)
    if names is not None and len(names) != model.in_channels:
        raise ValueError(
            f"names has {len(names)} entries: it must have one for each of the "
            f"{model.in_channels} input features"
        )
    if names is not None and isinstance(model.input_map, WordMap):
        raise ValueError("names must be None: the model has words, which are no one-hot features")
    if frequency is not None and (names is None or len(frequency) != len(names)):
        raise ValueError("frequency must have one entry for each of names")
    found = []
    for number, conv in enumerate(layers):
        adjacency, attributes = conv.filters()
        known = names if number == 0 else None
        weight = attributes.new_ones(attributes.size(2))
        if known is not None:
            attributes = attributes @ _mapped_units(model).T
            weight = attributes.new_ones(len(known))
            if frequency is not None:
                weight = attributes.new_tensor(frequency)
        kernels = [name for name, count in conv.kernels.items() for _ in range(count)]
        found.append(
            [
                _graph(adjacency[i], attributes[i], weight, threshold, known, kernels[i])
                for i in range(len(kernels))
            ]
        )
        for i, graph in enumerate(found[-1]):
            graph.graph.update(layer=number, index=i, kernel=kernels[i])
    return found


def group_isomorphic(graphs: Sequence[nx.Graph]) -> list[list[int]]:
    """Return the positions of graphs of equal shape, the largest group first."""
    groups: list[list[int]] = []
    for i, graph in enumerate(graphs):
        for group in groups:
            other = graphs[group[0]]
            if nx.faster_could_be_isomorphic(graph, other) and nx.is_isomorphic(graph, other):
                group.append(i)
                break
        else:
            groups.append([i])
    return sorted(groups, key=len, reverse=True)


def layer_values(model: KerGNN, batch: Batch) -> tuple[list[Tensor], list[Tensor]]:
    r"""Return the nodes' features :math:`\phi_0 \dots \phi_L` and, by layer, all kernel values."""
    layers = filter_layers(model)
    with _looking(model):
        features = model.node_features(batch.x, batch.ego)
        values = [conv.kernel_values(features[i], batch.ego) for i, conv in enumerate(layers)]
    return features, values


def silenced_logits(model: KerGNN, batch: Batch) -> tuple[Tensor, list[list[Tensor]]]:
    """Return the logits and, by layer and filter, the logits without the filter.

    What lies below the filter is evaluated once for all filters of a layer.
    """
    features, values = layer_values(model, batch)
    where = (batch.batch, batch.num_graphs) if model.task == "graph" else ()
    with _looking(model):
        return model.logits(features, batch.ego, *where), [
            [
                model.logits(_without(model, batch, features, values, layer, i), batch.ego, *where)
                for i in range(values[layer].size(1))
            ]
            for layer in range(len(values))
        ]


def filter_importance(
    model: KerGNN,
    batches: GraphBatches,
    which: Tensor,
    metric: str = "accuracy",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[Importance]]:
    """Return the importance of every filter, layer by layer.

    Args:
        model: a trained :class:`~kergnn.KerGNN`.
        batches: the graphs, with features and ego-graphs.
        which: positions of graphs (or nodes) with classes, usually the validation part.
        metric: one of :data:`kergnn.prediction.METRICS`.
        progress: called with the numbers of graphs (or nodes) done and in all.
    """
    if len(which) == 0:
        raise ValueError("which is empty: importance needs at least one graph or node")
    y = batches.y[which].cpu()
    whole: list[Tensor] = []
    silent: list[list[list[Tensor]]] = [
        [[] for _ in range(conv.out_channels)] for conv in filter_layers(model)
    ]
    for batch, rows in _pieces(batches, which):
        logits, silenced = silenced_logits(model, batch)
        whole.append(logits[rows].cpu())
        for layer, filters in enumerate(silenced):
            for i, changed in enumerate(filters):
                silent[layer][i].append(changed[rows].cpu())
        progress(sum(map(len, whole)), len(which))
    logits = torch.cat(whole)
    score = _score(metric, logits, y)

    def importance(layer: int, index: int) -> Importance:
        without = torch.cat(silent[layer][index])
        drop = score - _score(metric, without, y)
        return Importance(layer, index, drop, float((logits - without).abs().mean()))

    return [[importance(k, i) for i in range(len(parts))] for k, parts in enumerate(silent)]


def ranked(importance: list[Importance]) -> list[Importance]:
    """Return the most important first: by drop, then, since small parts tie, by contribution."""
    return sorted(importance, key=lambda one: (-one.drop, -one.contribution))


def _score(metric: str, logits: Tensor, y: Tensor) -> float:
    if metric == "accuracy":  # once for every filter: without all that scikit-learn checks
        return float((logits.argmax(1) == y).double().mean())
    return metrics(logits.softmax(1), y)[metric]


def _pieces(batches: GraphBatches, which: Tensor) -> Iterator[tuple[Batch, Tensor]]:
    """Yield batches of bounded size and which rows of their logits are asked for."""
    if batches.task == "node":
        yield batches(torch.arange(len(batches.size), device=batches.x.device)), which
        return
    for chunk in chunks(which, batches.size.cpu()):
        yield batches(chunk.to(batches.x.device)), torch.arange(len(chunk))


def _without(
    model: KerGNN,
    batch: Batch,
    features: list[Tensor],
    values: list[Tensor],
    layer: int,
    index: int,
) -> list[Tensor]:
    """Return the nodes' features after every layer, with one filter silenced."""
    silent = values[layer].clone()
    silent[:, index] = 0
    changed = features[: layer + 1]
    for number, (conv, norm) in enumerate(zip(filter_layers(model), model.norms, strict=True)):
        if number < layer:
            continue
        k = silent if number == layer else conv.kernel_values(changed[-1], batch.ego)
        changed.append(norm(conv.updated(changed[-1], k)).relu())
    return changed


def _mapped_units(model: KerGNN) -> Tensor:
    """Return what the layers see of a node whose only feature is 1: (in_channels, d)."""
    like = next(model.parameters())
    with torch.no_grad():
        units = torch.eye(model.in_channels, device=like.device, dtype=like.dtype)
        mapped: Tensor = units if model.input_map is None else model.input_map(units)
    return mapped


def _graph(
    adjacency: Tensor,
    attributes: Tensor,
    weight: Tensor,
    threshold: float,
    names: Sequence[str] | None,
    kernel: str,
) -> nx.Graph:
    keep = (adjacency > 0) & (adjacency >= threshold * adjacency.max())
    response = attributes * weight.sqrt()
    if kernel in ("rw", "drw") and response.flatten()[response.abs().argmax()] < 0:
        attributes, response = -attributes, -response
    size = response.norm(dim=1)
    size = size / size.max().clamp(min=1e-12)
    graph = nx.Graph()
    for node in keep.any(1).nonzero().flatten().tolist():
        graph.add_node(node, attributes=attributes[node].tolist(), strength=float(size[node]))
        if names is not None:
            best = int(response[node].abs().argmax())
            sign = 1 if response[node, best] >= 0 else -1
            graph.nodes[node].update(label=names[best], sign=sign)
    for a, b in keep.triu().nonzero().tolist():
        graph.add_edge(a, b, weight=float(adjacency[a, b]))
    return graph


@contextmanager
def _looking(model: KerGNN) -> Iterator[None]:
    """Evaluate without gradients or dropout, and leave the model's mode as it was."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
