"""One forward pass of a KerGNN whose derivatives hand the shares of a logit down to the input.

The rules are those of :mod:`kergnn.explain.attribution`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from kergnn._checks import check_choice
from kergnn.egographs import EgoGraphs
from kergnn.engine.normalize import normalize_values
from kergnn.explain.contributions import KERNELS, WalkStates, walk_states
from kergnn.nn import GraphFilters, KerGNN, KerGNNConv, WordMap
from kergnn.nn.readout import log_proportion
from kergnn.nn.smoothing import smoothed


@dataclass(frozen=True)
class Trace:
    """One forward pass, with what shares are read from.

    Args:
        x: the input; of a model with words, its numbers and the words' vectors.
        features: the nodes' features after every layer.
        readout: what the head sees of every layer.
        layers: for every layer and kernel its values and the walks they are made of.
        ego: the ego-graphs.
        outputs: (1, classes) the logits; where they are sums over nodes (N, classes) the summands.
    """

    x: Tensor
    features: list[Tensor]
    readout: list[Tensor]
    layers: list[list[tuple[Tensor, WalkStates | None]]]
    ego: EgoGraphs
    outputs: Tensor


def ego_graphs(model: KerGNN, data: Data) -> EgoGraphs:
    """Return the ego-graphs that the data carry, or build those that the model asks for."""
    if "ego_index" in data:
        return EgoGraphs.from_data(data)
    return EgoGraphs.from_edge_index(
        data.edge_index, data.num_nodes, model.num_hops, model.max_nodes
    )


def trace_forward(
    model: KerGNN, x: Tensor, ego: EgoGraphs, index: int | None, exact: bool
) -> Trace:
    """Run a model in evaluation and keep what shares are read from.

    Args:
        model: the model.
        x: (N, d) the features.
        ego: the ego-graphs.
        index: for a model of nodes, the node that the head looks at.
        exact: hand shares down by rules that keep their sum, not by plain derivatives.
    """
    x = x.detach()
    input_map: Callable[[Tensor], Tensor] | None = model.input_map
    if isinstance(input_map, WordMap):  # a word is no number: its vector is what has a share
        x, input_map = input_map.parts(x).detach(), input_map.joined
    x = x.clone().requires_grad_()
    features, layers = [x if input_map is None else input_map(x)], []
    for conv, norm in zip(model.convs, model.norms, strict=True):
        assert isinstance(conv, KerGNNConv)
        values, kept = _layer(conv, features[-1], ego, exact)
        features.append(_normalized(norm, values).relu())
        layers.append(kept)
    if has_evidence(model):
        readout = [f * 1.0 for f in features]  # what the head sees, not what the next layer does
    elif model.task == "node":
        readout = [f[index : index + 1] for f in features] if index is not None else []
    else:
        readout = [f.sum(0, keepdim=True) for f in features]
        if model.readout == "mean":
            readout = [f / max(len(x), 1) for f in readout]
        if model.readout == "log":
            readout = [s * log_proportion(s.detach() if exact else s) for s in readout]
    first, *head = model.head
    out = _normalized(first, torch.cat(readout, dim=1))
    for module in head:
        out = module(out)
    if model.restart is not None:
        assert index is not None
        out = out * _smoothing_weights(index, ego, model.restart).to(out)
    elif has_evidence(model):
        out = out - out.mean(1, keepdim=True)
    return Trace(x, features, readout, layers, ego, out)


def _layer(
    conv: KerGNNConv, x: Tensor, ego: EgoGraphs, exact: bool
) -> tuple[Tensor, list[tuple[Tensor, WalkStates | None]]]:
    """Return a layer's output and its kernel values, with derivatives that hand shares down."""
    parts, kept = [], []
    for group in conv.groups:
        assert isinstance(group, GraphFilters)
        K, states = _kernel_values(group, x, ego, conv.num_steps)
        if exact:
            # Euler: input times gradient of a homogeneous function is its degree times its value.
            degree = _degree(group.kernel.name, len(K)).to(K).view(-1, 1, 1)
            K = K / degree + (K - K / degree).detach()
        kept.append((K, states))
        if not group.kernel.walks:
            parts.append(K.squeeze(0))
            continue
        if exact:
            f = K * proportion(K.detach(), ego.size, group.filter_size, conv.normalize)
        else:
            f = normalize_values(K, ego.size, group.filter_size, conv.normalize)
        parts.append(torch.einsum("p,pni->ni", conv.step_weight.to(K.dtype), f))
    return conv.updated(x, torch.cat(parts, dim=1)), kept


def _kernel_values(
    group: GraphFilters, x: Tensor, ego: EgoGraphs, num_steps: int
) -> tuple[Tensor, WalkStates | None]:
    name = group.kernel.name
    check_choice("kernel", name, KERNELS)
    parameters = {key: group.get_parameter(key) for key in group.kernel.parameters}
    filters = (group.adjacency(), group.attributes)
    if not group.kernel.walks:
        return group.kernel.function(x, ego, *filters, num_steps, **parameters), None
    states = walk_states(name, x, ego, *filters, num_steps, **parameters)
    return states.values(), states


def _degree(kernel: str, terms: int) -> Tensor:
    """Return the degree of every K_p in the features."""
    if kernel == "rw-step":
        return torch.arange(1, terms + 1)
    return torch.full((terms,), 1 if kernel == "gcn" else 2)


def proportion(K: Tensor, size: Tensor, filter_size: int, normalize: str | None) -> Tensor:
    r"""Return f(K) / K, which at zero is the slope there.

    With q and r of :func:`kergnn.engine.normalize.normalize_values` the root is
    :math:`r - 0.1 = |q| / (r + 0.1)`, which loses no digits.
    """
    if normalize is None:
        return torch.ones_like(K)
    scale = (size.to(K.dtype) * filter_size).reciprocal().unsqueeze(-1)
    if normalize == "size":
        return scale.expand_as(K)
    q = (K * scale).abs()
    ratio = ((q + 0.01).sqrt() + 0.1).reciprocal()
    if normalize == "log":
        root = q * ratio
        tiny = root < 1e-6
        ratio = ratio * torch.where(tiny, 1.0, root.log1p() / root.masked_fill(tiny, 1.0))
        ratio = ratio / math.log(2)
    return ratio * scale


def _normalized(norm: nn.Module, h: Tensor) -> Tensor:
    """Return the norm's output; the deviation of a layer norm has no derivative here."""
    if isinstance(norm, nn.LayerNorm):
        centred = h - h.mean(-1, keepdim=True)
        scale = (centred.detach().square().mean(-1, keepdim=True) + norm.eps).rsqrt()
        return centred * scale * norm.weight + norm.bias
    out: Tensor = norm(h)
    return out


def has_evidence(model: KerGNN) -> bool:
    """Return whether logits are sums over the nodes: by the readout, or smoothed."""
    return (model.task == "graph" and model.readout == "evidence") or model.restart is not None


def _smoothing_weights(index: int, ego: EgoGraphs, restart: float) -> Tensor:
    """Return what the logits of every node count for those of one node when smoothed: (N, 1)."""
    h = torch.zeros(ego.num_nodes, 1, dtype=torch.double, requires_grad=True)
    (weights,) = torch.autograd.grad(smoothed(h, ego.to(h.device), restart)[index, 0], h)
    return weights
