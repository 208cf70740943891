"""What a model says of graphs or nodes, and how good that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from kergnn.batches import GraphBatches
from kergnn.edgebatches import EdgeBatches
from kergnn.nn import KerGNN

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "roc_auc")
_NODES_AT_ONCE = 20_000

Batches: TypeAlias = GraphBatches | EdgeBatches


def predict_probabilities(model: nn.Module, batches: Batches, which: Tensor) -> Tensor:
    """Return the class probabilities of the graphs (or nodes) ``which``: (len(which), classes)."""
    model.eval()
    with torch.no_grad():
        return outputs_of(model, batches, which).softmax(1).cpu()


def embeddings(model: KerGNN, batches: Batches, which: Tensor) -> Tensor:
    """Return what the head of the model sees of the graphs (or nodes) ``which``."""
    model.eval()
    with torch.no_grad():
        return outputs_of(model.embed, batches, which).cpu()


def outputs_of(
    model: Callable[..., Tensor], batches: Batches, which: Tensor, whole: bool = False
) -> Tensor:
    """Return what the model, or a part of it, gives for the graphs (or nodes) ``which``.

    Without ``whole``, graphs are cut into pieces that fit into memory.
    """
    device = batches.x.device
    if batches.task == "node":
        union = batches(torch.arange(len(batches.size), device=device))
        out: Tensor = model(*union.inputs[:2])[which.to(device)]
        return out
    parts = []
    for chunk in [which] if whole else chunks(which, batches.size.cpu()):
        batch = batches(chunk.to(device))
        parts.append(model(*batch.inputs))
    return torch.cat(parts)


def metrics(probabilities: Tensor, y: Tensor) -> dict[str, float]:
    """Return accuracy, balanced accuracy, macro F1 and, where both of two occur, the ROC-AUC.

    They equal those of scikit-learn, whose checks of its arguments would take longer than an epoch
    of a small set.
    """
    predicted, truth = probabilities.argmax(1).numpy(), y.numpy()
    count = probabilities.size(1)
    true, claimed = (np.bincount(labels, minlength=count) for labels in (truth, predicted))
    right = np.bincount(truth[predicted == truth], minlength=count)
    present, met = true > 0, true + claimed > 0
    found = {
        "accuracy": float((predicted == truth).mean()),
        "balanced_accuracy": float((right[present] / true[present]).mean()),
        "macro_f1": float((2 * right[met] / (true + claimed)[met]).mean()),
    }
    if count == 2 and present.all():
        # The share of pairs that are in the right order, ties counted as a half.
        ranks = rankdata(probabilities[:, 1].numpy())[truth == 1]
        found["roc_auc"] = float((ranks.sum() - true[1] * (true[1] + 1) / 2) / (true[0] * true[1]))
    return found


def log_loss(probabilities: Tensor, y: Tensor) -> float:
    """Return the mean of minus the logarithm of the true classes' probabilities."""
    chosen = probabilities.gather(1, y.unsqueeze(1)).squeeze(1)
    return float(-chosen.clamp(min=1e-12).log().mean())


def chunks(which: Tensor, size: Tensor) -> list[Tensor]:
    """Cut a list of graphs into pieces of a bounded number of nodes, at least one graph each."""
    piece = size[which].cumsum(0) // _NODES_AT_ONCE
    counts = torch.unique_consecutive(piece, return_counts=True)[1].tolist()
    return list(torch.split(which, counts))
