"""How true explanations are, in numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import networkx as nx
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch_geometric.data import Data

from kergnn.config import ConfigError
from kergnn.data import GraphSet, ground_truth
from kergnn.data.store import write_atomic
from kergnn.egographs import EgoGraphs
from kergnn.explain.attribution import explain
from kergnn.explain.contributions import walk_states
from kergnn.explain.fidelity import fidelity_scores
from kergnn.explain.filters import filter_graphs
from kergnn.explain.matches import occurs, structures
from kergnn.explain.subject import Subject
from kergnn.nn import KerGNN, KerGNNConv

# Smaller differences of two drops count as none.
_LEVEL = 0.01


def explanation_metrics(
    model: KerGNN,
    graphs: GraphSet,
    x: Tensor,
    which: Tensor,
    threshold: float = 0.5,
    keep: float = 0.3,
    limit: int = 100,
) -> dict[str, float]:
    """Measure a model's filters and, for a model of graphs, its explanations.

    Args:
        model: a trained model.
        graphs: the data set.
        x: (N, d) its features.
        which: positions of the graphs to explain, usually the test part; at most ``limit``.
        threshold: where edges of filters are cut, see :func:`kergnn.explain.filters.filter_graphs`.
        keep: the share of a graph's edges that counts as its explanation.
        limit: largest number of graphs.

    Returns:
        ``edge_auc`` and ``node_auc`` where the truth is known, against the true classes;
        ``fidelity_plus``, ``fidelity_minus``, ``characterization``, ``ablation_drop`` and
        ``random_drop`` (see :class:`~kergnn.explain.fidelity.FidelityScore`) for the predicted
        ones; ``existence_rate``, and ``redundancy_1`` and so on, one for each layer.
    """
    found: dict[str, float] = {}
    if model.task == "graph":
        truth = ground_truth(graphs)
        data = (truth or graphs).to_data_list(x)
        if truth is not None:
            found |= _truth_metrics(model, [data[g] for g in which.tolist()], limit)
        chosen = which[:: max(1, -(-len(which) // limit))].tolist()
        filled = [data[g] for g in chosen if data[g].edge_index.size(1)]
        scores = fidelity_scores(model, [explain(model, d) for d in filled], keep)
        found |= {
            "fidelity_plus": scores.positive,
            "fidelity_minus": scores.negative,
            "characterization": scores.characterization,
            "ablation_drop": scores.drop,
            "random_drop": scores.random_drop,
        }
    patterns = [graph for layer in filter_graphs(model, threshold) for graph in layer]
    found["existence_rate"] = existence_rate(patterns, structures(graphs, range(graphs.num_graphs)))
    layers = enumerate(redundancy(model), start=1)
    return found | {f"redundancy_{layer}": value for layer, value in layers}


def measure_run(
    subject: Subject, out: Path, threshold: float = 0.5, others: Sequence[Subject] = ()
) -> dict[str, float]:
    """Measure a finished run on its test part and write ``explanation.json`` into ``out``.

    Args:
        subject: the run.
        out: the directory.
        threshold: see :func:`explanation_metrics`.
        others: runs of other seeds on the same data, for ``stability``.
    """
    for other in others:
        if other.graphs.fingerprint != subject.graphs.fingerprint:
            raise ConfigError(
                f"{other.name} was trained on {other.graphs.name}, not on the same data"
            )
    scores = explanation_metrics(
        subject.model, subject.graphs, subject.batches.x, subject.split.test, threshold
    )
    if others:
        scores["stability"] = _stability_of_runs([subject, *others])
    # JSON has no word for what could not be measured.
    known = {name: None if math.isnan(value) else value for name, value in scores.items()}
    write_atomic(out / "explanation.json", (json.dumps(known, indent=2) + "\n").encode())
    return scores


def doubt(scores: dict[str, float]) -> str:
    """Return a warning where explained edges matter hardly more than random ones, else nothing."""
    if not scores.get("ablation_drop", math.inf) - scores.get("random_drop", 0.0) < _LEVEL:
        return ""
    return (
        "predictions lose no more without the explained edges than without random ones: the scores "
        "of edges say little here."
    )


def _stability_of_runs(subjects: Sequence[Subject], limit: int = 30) -> float:
    """Return how alike the runs explain the edges, for one class, of the first run's test part."""
    first = subjects[0]
    part = first.split.test[:: max(1, -(-len(first.split.test) // limit))].tolist()
    masks: list[list[Tensor]] = [[] for _ in subjects]
    for item in part:
        graph, index = item, None
        if first.graphs.task == "node":
            graph = int(first.graphs.graph_of[item])
            index = item - int(first.graphs.ptr[graph])
        target = int(first.graphs.y[item])
        for mask, subject in zip(masks, subjects, strict=True):
            found = explain(subject.model, subject.data(graph), target, index=index)
            mask.append(found.edge_contribution)
    return stability(masks)


def _truth_metrics(model: KerGNN, data: list[Data], limit: int) -> dict[str, float]:
    marked = [d for d in data if d.edge_truth.any() and not d.edge_truth.all()][:limit]
    if not marked:
        return {}
    made = [explain(model, d, int(d.y)) for d in marked]
    edges = truth_auc([e.edge_contribution for e in made], [d.edge_truth for d in marked])
    nodes = truth_auc([e.node_contribution for e in made], [d.node_truth for d in marked])
    return {"edge_auc": edges.mean, "node_auc": nodes.mean}


@dataclass(frozen=True)
class TruthScore:
    """How well scores tell what belongs to the truth.

    Args:
        mean: mean of the ROC-AUCs of single graphs.
        pooled: ROC-AUC of all scores of all graphs together.
        count: number of graphs that have both, what belongs to the truth and what does not.
    """

    mean: float
    pooled: float
    count: int


def truth_auc(scores: Sequence[Tensor], truths: Sequence[Tensor]) -> TruthScore:
    """Return the ROC-AUC of scores against the truth, over the graphs that have a motif.

    Args:
        scores: for every graph the score of its nodes or edges, (N,) or (E,).
        truths: for every graph which of them belong to the truth.
    """
    kept = [
        (score.flatten().double().cpu(), truth.cpu())
        for score, truth in zip(scores, truths, strict=True)
        if truth.any() and not truth.all()
    ]
    if not kept:
        raise ValueError("truths has no graph with a motif and something beside it")
    single = [float(roc_auc_score(truth, score)) for score, truth in kept]
    pooled = roc_auc_score(torch.cat([t for _, t in kept]), torch.cat([s for s, _ in kept]))
    return TruthScore(sum(single) / len(single), float(pooled), len(kept))


def stability(masks: Sequence[Sequence[Tensor]]) -> float:
    """Return the mean rank correlation of masks of the same graphs by models of several seeds.

    Args:
        masks: for every seed the masks of all graphs, in the same order. Graphs whose mask is
            constant for one of two seeds do not count.
    """
    if len(masks) < 2:
        raise ValueError(f"masks is of {len(masks)} seeds: at least two are needed")
    found = []
    for one, other in combinations(masks, 2):
        for a, b in zip(one, other, strict=True):
            if len(a) > 1 and a.min() < a.max() and b.min() < b.max():
                found.append(float(spearmanr(a.flatten(), b.flatten()).statistic))
    return sum(found) / len(found) if found else float("nan")


def filter_similarity(conv: KerGNNConv) -> Tensor:
    r"""Return the similarity of a layer's filters among themselves: (D, D), from -1 to 1.

    The cosine :math:`k(H_i, H_j) / \sqrt{k(H_i, H_i)\, k(H_j, H_j)}` of the random-walk kernel
    ``rw``, its steps summed with weight one, each filter scaled to attributes of length one.
    """
    with torch.no_grad():
        adjacency, attributes = conv.filters()
        D, m, d = attributes.shape
        attributes = attributes / attributes.flatten(1).norm(dim=1).clamp(min=1e-12).view(-1, 1, 1)
        # Filters have weighted edges: one ego-graph a filter, all pairs of nodes joined.
        pairs = torch.ones(m, m).fill_diagonal_(0).nonzero()
        ego = EgoGraphs(
            index=torch.arange(D * m),
            size=torch.full((D,), m),
            hop=torch.zeros(D * m, dtype=torch.long),
            degree=torch.full((D * m,), m - 1),
            neighbor=pairs[:, 1].repeat(D),
        )
        weight = adjacency[:, pairs[:, 0], pairs[:, 1]].flatten()
        states = walk_states(
            "rw",
            attributes.reshape(D * m, d),
            ego,
            adjacency,
            attributes,
            conv.num_steps,
            edge_weight=weight,
        )
        K = states.values().sum(0)
        norm = K.diagonal().clamp(min=1e-24).sqrt()
        return K / (norm.unsqueeze(0) * norm.unsqueeze(1))


def redundancy(model: KerGNN) -> list[float]:
    """Return for every layer the mean similarity of a filter with the one most like it."""
    found = []
    for conv in model.convs:
        assert isinstance(conv, KerGNNConv)
        similarity = filter_similarity(conv)
        if len(similarity) < 2:
            found.append(0.0)
            continue
        other = similarity - 2 * torch.eye(len(similarity))
        found.append(float(other.max(1).values.mean()))
    return found


def existence_rate(patterns: Sequence[nx.Graph], graphs: Sequence[nx.Graph]) -> float:
    """Return the share of patterns with an edge that are a subgraph of one of the graphs.

    Args:
        patterns: filters after thresholding.
        graphs: the graphs of the data.
    """
    filled = [pattern for pattern in patterns if pattern.number_of_edges()]
    if not filled:
        return float("nan")
    return sum(occurs(pattern, graphs) for pattern in filled) / len(filled)


def recovered(patterns: Sequence[nx.Graph], motif: nx.Graph) -> list[int]:
    """Return the positions of the patterns that are isomorphic to a motif."""
    return [i for i, pattern in enumerate(patterns) if nx.is_isomorphic(pattern, motif)]
