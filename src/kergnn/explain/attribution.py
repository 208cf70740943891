r"""Explanations of a KerGNN's output from its mechanism: which nodes and edges made a logit.

**Exact, for the last step.** With sum or mean readout a graph's features are a sum over its nodes,
and the head, in evaluation a batch norm and an MLP with ReLU, is affine around them. So a logit is

.. math:: z = c + \sum_{l=0}^{L} \sum_{v} g_l \cdot \phi_l(v)

with the gradient g of the head: ``layer_contribution[l, v]`` is the share of :math:`\phi_l(v)`.
With the readout ``"log"`` the nodes share the logarithm of a sum in proportion to their summands.
With the readout ``"evidence"`` a logit is a sum over the nodes as it is; so is a node's logit that
was smoothed (``restart``), a sum over its surroundings.

**Layer-wise, down to the input.** Shares are handed down by rules that keep their sum:

- linear maps, batch norm, ReLU: input times gradient; what belongs to biases goes to ``baseline``;
- normalisation f of a kernel value: in proportion, :math:`f(K) / K` takes the place of the slope
  (the deviation of a layer norm is taken as constant);
- kernel values: by the exact contributions of :mod:`kergnn.explain.contributions`. A kernel value
  is homogeneous in the features, of degree 2 (``rw``, ``drw``) or p + 1 (``rw-step``), so a node's
  exact contribution is input times gradient divided by the degree.

So ``baseline + node_contribution.sum()`` is the logit. On the way every layer's walks leave their
shares on the edges they use: ``edge_contribution``, summed over the layers. What smoothing carries
over an edge is not among them, nor what ``gcn`` does; occlusion counts both.

**By experiment.** An edge's effect is what the logit loses when the edge is taken out of the graph,
:math:`z(G) - z(G \setminus e)`: exact, at the price of one more graph for every edge.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explanation

from kergnn._checks import check_choice
from kergnn.egographs import EgoGraphs
from kergnn.explain.tracing import Trace, ego_graphs, has_evidence, trace_forward
from kergnn.nn import KerGNN
from kergnn.nn.readout import log_proportion

METHODS = ("walks", "gradient", "readout", "occlusion")
# So many nodes go through the model at once when edges are taken out one by one.
_NODES_AT_ONCE = 20_000


def explain(
    model: nn.Module,
    data: Data,
    target: int | None = None,
    *,
    index: int | None = None,
    method: str | None = None,
) -> Explanation:
    """Explain one logit of a KerGNN by the nodes and edges of a graph.

    Args:
        model: a :class:`kergnn.KerGNN` for graphs or nodes; it is evaluated without dropout.
        data: the graph, with ``x`` and ``edge_index``; the ego-graphs that
            :class:`kergnn.EgoSubgraphs` stored are used, otherwise they are built.
        target: the class, ``None`` for the predicted one.
        index: for a model of nodes, the node whose class is explained.
        method: ``"walks"`` for layer-wise shares by exact kernel contributions, where edges have
            those of the walks that use them (none by smoothing or ``gcn``); ``"readout"`` for
            the exact shares of the nodes' features in the head, summed over the layers (where
            logits are sums over nodes, the summands), where an edge has the smaller share of its
            two ends and a tenth of their mean; ``"occlusion"``
            for the same shares of nodes, and for edges what the logit loses without them;
            ``"gradient"`` for input times gradient all the way, whose sum is not the logit.
            ``None`` is ``"readout"`` where a graph's logits are sums over its nodes (the readout
            ``"evidence"``) and ``"walks"`` otherwise.

    Returns:
        an ``Explanation`` with

        - ``node_mask`` (N, 1) and ``edge_mask`` (E,): the positive contributions, divided by the
          largest;
        - ``node_contribution`` (N,) and ``edge_contribution`` (E,): with their signs. The share of
          an edge is split between its entries in ``edge_index`` (for ``"readout"`` and
          ``"occlusion"`` every entry has it);
        - ``layer_contribution`` (L + 1, N): the exact shares in the head, by layer (for the readout
          ``"log"`` in proportion), whatever the method;
        - ``baseline``: what belongs to no node, so that it and the nodes sum to the logit (not for
          ``"gradient"``, where it is 0);
        - ``prediction`` (1, classes): all logits; ``target`` (1,): the class.
    """
    method = _checked_method(model, data, index, method)
    assert isinstance(model, KerGNN)
    was_training = model.training
    model.eval()
    try:
        with torch.enable_grad():
            trace = trace_forward(
                model, data.x, ego_graphs(model, data), index, exact=method != "gradient"
            )
    finally:
        model.train(was_training)
    logits = trace.outputs.sum(0)
    if target is None:
        target = int(logits.argmax())
    elif not 0 <= target < len(logits):
        raise ValueError(f"target is {target!r}: it must be a class, from 0 to {len(logits) - 1}")
    output = trace.outputs[:, target]

    of_x, of_readout, of_kernels = _gradients(trace, target)
    layer = _layer_shares(model, trace, of_readout, index)
    if method in ("readout", "occlusion"):
        nodes = output.detach() if has_evidence(model) else layer.sum(0)
        by_ends = method == "readout"
        edges = _of_ends(nodes, data) if by_ends else _losses(model, data, logits, target, index)
        edges = edges.masked_fill(data.edge_index[0] == data.edge_index[1], 0.0)
    else:
        nodes = (trace.x * of_x).sum(1).detach()
        edges = _edge_shares(trace, of_kernels, data.edge_index, exact=method == "walks")
    rest = logits[target].detach() - nodes.sum()
    return Explanation(
        x=data.x,
        edge_index=data.edge_index,
        node_mask=_mask(nodes).unsqueeze(1),
        edge_mask=_mask(edges),
        node_contribution=nodes,
        edge_contribution=edges,
        layer_contribution=layer,
        baseline=torch.zeros_like(rest) if method == "gradient" else rest,
        prediction=logits.detach().unsqueeze(0),
        target=torch.tensor([target], device=logits.device),
    )


def _of_ends(nodes: Tensor, data: Data) -> Tensor:
    """Return the shares of edges by those of their ends: (E,)."""
    ends = nodes[data.edge_index]
    # Both ends count; where one has nothing, the other decides.
    return ends.amin(0) + 0.1 * ends.mean(0)


def _losses(model: KerGNN, data: Data, whole: Tensor, target: int, index: int | None) -> Tensor:
    """Return what the logit loses without an edge, for every entry of ``edge_index``: (E,)."""
    pairs, inverse, _ = pair_codes(data.edge_index, data.num_nodes)
    missing = range(-1, len(pairs))  # nothing is missing, then one pair after the other
    step = max(1, _NODES_AT_ONCE // max(data.num_nodes, 1))
    logits = []
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for start in range(0, len(missing), step):
                batch = Batch.from_data_list(
                    [
                        Data(x=data.x, edge_index=data.edge_index[:, inverse != pair])
                        for pair in missing[start : start + step]
                    ]
                )
                ego = ego_graphs(model, batch)
                if index is None:
                    logits.append(model(batch.x, ego, batch.batch, batch.num_graphs))
                else:
                    logits.append(model(batch.x, ego)[batch.ptr[:-1] + index])
    finally:
        model.train(was_training)
    z = torch.cat(logits)[:, target]
    if not torch.allclose(z[0], whole[target].detach(), rtol=1e-3, atol=1e-3):
        raise ValueError(
            "data has other ego-graphs than the model would build, but edges are taken out before "
            f"they are built: num_hops is {model.num_hops}, max_nodes is {model.max_nodes}"
        )
    return (z[0] - z[1:])[inverse]


def _checked_method(model: nn.Module, data: Data, index: int | None, method: str | None) -> str:
    """Return the method that ``None`` stands for, after a look at the arguments."""
    if not isinstance(model, KerGNN):
        raise ValueError(f"model is a {type(model).__name__}: explain() takes a KerGNN")
    check_choice("method", method, [None, *METHODS])
    if data.x is None or data.edge_index is None:
        raise ValueError("data must have x and edge_index")
    if model.task == "node" and (index is None or not 0 <= index < data.num_nodes):
        raise ValueError(f"index is {index!r}: it must be a node, from 0 to {data.num_nodes - 1}")
    if model.task == "graph" and index is not None:
        raise ValueError(f"index is {index!r}: it must be None, the model classifies graphs")
    return method or ("readout" if has_evidence(model) and model.task == "graph" else "walks")


def _gradients(trace: Trace, target: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Return a logit's derivatives by the input, what the head sees and the kernel values."""
    with torch.enable_grad():
        logit = trace.outputs[:, target].sum()
    kernel_values = [K for layer in trace.layers for K, _ in layer]
    inputs = [trace.x, *trace.readout, *kernel_values]
    of_x, *rest = torch.autograd.grad(logit, inputs, allow_unused=True, materialize_grads=True)
    return of_x, rest[: len(trace.readout)], rest[len(trace.readout) :]


def _layer_shares(
    model: KerGNN, trace: Trace, of_readout: list[Tensor], index: int | None
) -> Tensor:
    """Return the share of every layer's features of every node in the head: (L + 1, N)."""
    count, features = len(trace.x), [f.detach() for f in trace.features]
    if model.task == "graph" and model.readout == "log":
        features = [f * log_proportion(f.sum(0)) for f in features]
    shares = [(f * g).sum(1) for f, g in zip(features, of_readout, strict=True)]
    layer = torch.stack(shares)
    if index is not None and not has_evidence(model):
        only = torch.zeros_like(layer)
        only[:, index] = layer[:, index]
        return only
    means = model.task == "graph" and model.readout == "mean"
    return layer / max(count, 1) if means else layer


def _edge_shares(trace: Trace, of_kernels: list[Tensor], edge_index: Tensor, exact: bool) -> Tensor:
    """Return the share of every entry of ``edge_index`` (E,), summed over layers and kernels."""
    ego, count = trace.ego, len(trace.x)
    row = ego.edge_index[0]
    total = trace.outputs.new_zeros(row.size(0))
    pairs = [pair for layer in trace.layers for pair in layer]
    with torch.no_grad():
        for (_, states), coefficient in zip(pairs, of_kernels, strict=True):
            for p in range(1, len(coefficient)) if states is not None else ():
                assert states is not None
                share = (states.edges(p) * coefficient[p][ego.center[row]]).sum(1)
                total += share if exact else p * share
    return spread_over_edges(total, ego, edge_index, count)


def spread_over_edges(values: Tensor, ego: EgoGraphs, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Sum values of the ego-graphs' edges (S,) by pair of nodes and split them between entries.

    Args:
        values: (S,) in the order of ``ego.edge_index``.
        ego: the ego-graphs.
        edge_index: (2, E) the entries; both directions and double ones count as one pair.
        num_nodes: number of nodes.
    """
    code, inverse, count = pair_codes(edge_index, num_nodes)
    ends = ego.index[ego.edge_index]
    of_ego = ends.amin(0) * num_nodes + ends.amax(0)
    totals = values.new_zeros(len(code)).index_add(0, torch.searchsorted(code, of_ego), values)
    split = (totals / count)[inverse]
    return split.masked_fill(edge_index[0] == edge_index[1], 0.0)


def pair_codes(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return one number for every unordered pair, the pair of every entry, entries a pair."""
    ends = edge_index.amin(0) * num_nodes + edge_index.amax(0)
    code, inverse, count = torch.unique(ends, return_inverse=True, return_counts=True)
    return code, inverse, count


def _mask(contribution: Tensor) -> Tensor:
    """Return the positive part, divided by the largest."""
    positive = contribution.clamp(min=0)
    largest = positive.max() if len(positive) else positive.new_zeros(())
    return positive / largest if largest > 0 else positive
