r"""Models as PyG's explainers take them: ``torch_geometric.explain.Explainer`` and its algorithms.

GNNExplainer, PGExplainer and CaptumExplainer put a soft weight on every edge, by way of the
``MessagePassing`` layers of a model. A KerGNN has none; :class:`ExplainableKerGNN` evaluates the
same layers in plain torch with weighted edges:

- the adjacency of an ego-graph holds the weights, the mean of those of an edge's two directions;
- a member counts as far as it is reached from the centre: with the largest product of weights
  along a walk of at most ``num_hops`` steps. This multiplies its features and counts in the size.

With all weights one this is the model. With weights of zero and one it is the model on the graph
without the edges of weight zero, for ego-graphs that ``max_nodes`` does not cut (and, for ``drw``,
up to the hop distances, which stay those of the whole graph).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from kergnn._checks import check_choice
from kergnn.egographs import EgoGraphs
from kergnn.explain.attribution import pair_codes
from kergnn.explain.contributions import KERNELS, walk_states
from kergnn.explain.tracing import proportion
from kergnn.kernels.ragged import normalized_sum, similarity, sum_members
from kergnn.nn import GraphFilters, KerGNN, KerGNNConv
from kergnn.nn.smoothing import NUM_SMOOTHING_STEPS, smoothed


def explainable(model: nn.Module) -> nn.Module:
    """Return the model as ``Explainer`` takes it: ``module(x, edge_index, batch=None)``.

    Args:
        model: a :class:`kergnn.KerGNN`, or a network of ``MessagePassing`` layers that is called
            with features, edge index, batch and number of graphs, such as the baseline ``gin``.
            One that has words among its features takes masks of edges only: no half of a word is
            one.
    """
    made: nn.Module
    made = ExplainableKerGNN(model) if isinstance(model, KerGNN) else ExplainableNetwork(model)
    # PyG sets the mode it finds on the outside on all that is inside.
    return made.train(model.training)


class ExplainableNetwork(nn.Module):
    """A network of ``MessagePassing`` layers; without ``batch`` all nodes are one graph.

    Args:
        model: called with features, edge index, batch and number of graphs.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        if not any(isinstance(module, MessagePassing) for module in model.modules()):
            raise ValueError(f"model is a {type(model).__name__}: it has no MessagePassing layer")
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Return the logits; the number of graphs is that of the largest index."""
        if batch is None:
            batch = torch.zeros(len(x), dtype=torch.long, device=x.device)
        num_graphs = int(batch.max()) + 1 if len(batch) else 1
        out: Tensor = self.model(x, edge_index, batch, num_graphs)
        return out


class ExplainableKerGNN(nn.Module):
    """A KerGNN in plain torch whose edges may have soft weights.

    Args:
        model: the model; its parameters are used, not copied.
    """

    def __init__(self, model: KerGNN) -> None:
        super().__init__()
        self.model = model
        # PyG reads the radius of a model off the number of its layers.
        self.layers = nn.ModuleList()
        for conv, norm in zip(model.convs, model.norms, strict=True):
            self.layers.extend(_Hop() for _ in range(model.num_hops - 1))
            self.layers.append(_SoftLayer(conv, norm))
        self.smoothing = None
        if model.restart is not None:
            self.smoothing = _SoftSmoothing(model.restart, model.num_hops)
            self.hops = nn.ModuleList(
                _Hop() for _ in range(NUM_SMOOTHING_STEPS * model.num_hops - 1)
            )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Return the logits; the number of graphs is that of the largest index."""
        model = self.model
        ego = EgoGraphs.from_edge_index(edge_index, len(x), model.num_hops, model.max_nodes)
        h = x if model.input_map is None else model.input_map(x)
        features = [h]
        for layer in self.layers:
            h = layer(h, ego, edge_index)
            if isinstance(layer, _SoftLayer):
                features.append(h)
        if self.smoothing is None:
            where = (batch, None if batch is None else int(batch.max()) + 1)
            return model.logits(features, ego, *where)
        out: Tensor = self.smoothing(model.head(torch.cat(features, dim=1)), ego, edge_index)
        return out


class _Hop(MessagePassing):  # type: ignore[misc]
    """Does nothing but count as a hop."""

    def forward(self, h: Tensor, ego: EgoGraphs, edge_index: Tensor) -> Tensor:
        return h


class _SoftLayer(MessagePassing):  # type: ignore[misc]
    """A layer of a KerGNN that reads the weights an explainer has put on it."""

    def __init__(self, conv: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm = conv, norm

    def forward(self, h: Tensor, ego: EgoGraphs, edge_index: Tensor) -> Tensor:
        edge_weight = _soft_weights(self, ego, edge_index, len(h))
        assert isinstance(self.conv, KerGNNConv)
        out: Tensor = self.norm(soft_conv(self.conv, h, ego, edge_weight))
        return out.relu()


class _SoftSmoothing(MessagePassing):  # type: ignore[misc]
    """The smoothing, which reads the weights an explainer has put on it."""

    def __init__(self, restart: float, num_hops: int) -> None:
        super().__init__()
        self.restart, self.num_hops = restart, num_hops

    def forward(self, h: Tensor, ego: EgoGraphs, edge_index: Tensor) -> Tensor:
        edge_weight = _soft_weights(self, ego, edge_index, len(h))
        member, size = _soft_members(ego, edge_weight, self.num_hops)
        return smoothed(h, ego, self.restart, member, size)


def _soft_weights(
    layer: MessagePassing, ego: EgoGraphs, edge_index: Tensor, num_nodes: int
) -> Tensor | None:
    """Return the weights (S,) that an explainer has put on a layer, if it has."""
    if layer._edge_mask is None:
        return None
    mask = layer._edge_mask.sigmoid() if layer._apply_sigmoid else layer._edge_mask
    return ego_edge_weights(mask, ego, edge_index, num_nodes)


def ego_edge_weights(weight: Tensor, ego: EgoGraphs, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return the weight of every edge of the ego-graphs (S,) from those of ``edge_index`` (E,)."""
    code, inverse, count = pair_codes(edge_index, num_nodes)
    mean = weight.new_zeros(len(code)).index_add(0, inverse, weight) / count
    ends = ego.index[ego.edge_index]
    return mean[torch.searchsorted(code, ends.amin(0) * num_nodes + ends.amax(0))]


def soft_conv(
    conv: KerGNNConv, x: Tensor, ego: EgoGraphs, edge_weight: Tensor | None = None
) -> Tensor:
    """Return the output of a layer (N, D) on ego-graphs with weighted edges (S,)."""
    member, size = _soft_members(ego, edge_weight, conv.num_hops)
    parts = []
    for group in conv.groups:
        assert isinstance(group, GraphFilters)
        check_choice("kernel", group.kernel.name, KERNELS)
        if not group.kernel.walks:
            parts.append(
                normalized_sum(similarity(x, group.attributes).squeeze(-1), ego, member, size)
            )
            continue
        parameters = {key: group.get_parameter(key) for key in group.kernel.parameters}
        weight = edge_weight
        if member is not None and edge_weight is not None:
            row, col = ego.edge_index
            weight = edge_weight * member[row] * member[col]
        K = walk_states(
            group.kernel.name,
            x,
            ego,
            group.adjacency(),
            group.attributes,
            conv.num_steps,
            edge_weight=weight,
            member_weight=member,
            **parameters,
        ).values()
        f = K * proportion(K, size, group.filter_size, conv.normalize)
        parts.append(torch.einsum("p,pni->ni", conv.step_weight.to(K.dtype), f))
    return conv.updated(x, torch.cat(parts, dim=1))


def _soft_members(
    ego: EgoGraphs, edge_weight: Tensor | None, num_hops: int
) -> tuple[Tensor | None, Tensor]:
    """Return the weights of the members (T,), ``None`` for 1, and their sums (N,)."""
    if edge_weight is None:
        return None, ego.size
    member = _reach(ego, edge_weight, num_hops)
    return member, sum_members(member.unsqueeze(1), ego).squeeze(1)


def _reach(ego: EgoGraphs, edge_weight: Tensor, num_hops: int) -> Tensor:
    """Return how far every member is reached from its centre, (T,)."""
    row, col = ego.edge_index
    reach = (ego.hop == 0).to(edge_weight.dtype)
    for _ in range(num_hops):
        reach = reach.scatter_reduce(0, row, reach[col] * edge_weight, "amax")
    return reach
