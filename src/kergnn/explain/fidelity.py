"""What becomes of predictions with and without the edges that explanations name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.explain.algorithm import DummyExplainer
from torch_geometric.explain.metric import characterization_score, fidelity

from kergnn.explain.pyg import explainable


@dataclass(frozen=True)
class FidelityScore:
    """What becomes of the predictions with and without what explanations name.

    Args:
        positive: fidelity+, how often the class changes when it is taken away.
        negative: fidelity-, how often the class changes when nothing else is left.
        characterization: the harmonic mean of fidelity+ and 1 - fidelity-.
        drop: mean drop of the class's probability when it is taken away.
        random_drop: the same when as many random edges are taken away.
    """

    positive: float
    negative: float
    characterization: float
    drop: float
    random_drop: float


def fidelity_scores(
    model: nn.Module, explanations: Sequence[Explanation], keep: float = 0.3, seed: int = 0
) -> FidelityScore:
    """Return PyG's fidelity of edge masks, cut to the most important edges.

    Args:
        model: a network for graphs that :func:`kergnn.explain.pyg.explainable` takes.
        explanations: with ``x``, ``edge_index`` and ``edge_mask``.
        keep: the share of a graph's edges that counts as the explanation.
        seed: of the random edges.
    """
    if not explanations:
        raise ValueError("explanations is empty")
    module = explainable(model).eval()
    explainer = Explainer(
        module,
        DummyExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for one in explanations:
        logits = explainer.get_prediction(one.x, one.edge_index)
        target = logits.argmax(-1)
        hard = Explanation(
            x=one.x,
            edge_index=one.edge_index,
            edge_mask=top_edges(one.edge_mask, one.edge_index, keep),
            target=target,
        )
        hard._model_args = []
        plus, minus = fidelity(explainer, hard)
        random = torch.rand(one.edge_index.size(1), generator=generator)
        drops = [
            _probability(logits, target) - _probability(_masked(explainer, hard, mask), target)
            for mask in (hard.edge_mask, top_edges(random, one.edge_index, keep))
        ]
        rows.append([plus, minus, *drops])
    plus, minus, drop, random_drop = torch.tensor(rows).mean(0)
    # PyG divides by both; either may be at its end.
    score = 0.0
    if plus > 0 and minus < 1:
        score = float(characterization_score(plus, minus))
    return FidelityScore(float(plus), float(minus), score, float(drop), float(random_drop))


def top_edges(mask: Tensor, edge_index: Tensor, keep: float) -> Tensor:
    """Return 1 for the share ``keep`` of the edges with the largest masks, else 0: (E,).

    The two directions of an edge stay together.
    """
    if not 0 < keep <= 1:
        raise ValueError(f"keep is {keep!r}: it must be above 0 and at most 1")
    if not len(mask):
        return mask.clone()
    ends = edge_index.amin(0) * (int(edge_index.max()) + 1) + edge_index.amax(0)
    code, inverse = torch.unique(ends, return_inverse=True)
    total = mask.new_zeros(len(code)).index_add(0, inverse, mask)
    chosen = torch.zeros_like(total)
    chosen[total.argsort(descending=True, stable=True)[: max(1, round(keep * len(code)))]] = 1
    return chosen[inverse]


def _masked(explainer: Explainer, one: Data, mask: Tensor) -> Tensor:
    """Return the logits without the edges of a mask."""
    out: Tensor = explainer.get_masked_prediction(one.x, one.edge_index, None, 1 - mask)
    return out


def _probability(logits: Tensor, target: Tensor) -> float:
    return float(logits.softmax(-1)[0, target])
