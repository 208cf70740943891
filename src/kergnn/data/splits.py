"""Splits into training, validation and test parts.

Published splits are used where the mirror has them and they fit the set; otherwise splits are
drawn, stratified by class and from fixed seeds, so that they are the same everywhere:

- graphs: 10 outer folds; fold k is the test part of split k, and a tenth of the rest its validation
  part;
- nodes: 60 % training, 20 % validation, 20 % test of every class, drawn anew for each of 10 splits.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn.data.graphset import DataError, GraphSet

NUM_SPLITS = 10


@dataclass(frozen=True)
class Split:
    """Three disjoint parts, as ascending positions of graphs (or nodes).

    Args:
        name: the split's id, as stored with results: its origin and number.
        train: what the model is fitted to.
        validation: what selects the epoch and the hyper-parameters.
        test: what is looked at once, in the end.
    """

    name: str
    train: Tensor
    validation: Tensor
    test: Tensor

    @property
    def hash(self) -> str:
        """A hash of the three parts."""
        digest = hashlib.sha256()
        for part in (self.train, self.validation, self.test):
            digest.update(f"{len(part)}:".encode() + part.numpy().tobytes())
        return digest.hexdigest()[:16]

    def without_validation(self) -> Split:
        """Return the split with its validation part joined to the training part."""
        both = torch.cat([self.train, self.validation]).sort().values
        return replace(self, train=both, validation=self.validation[:0])


def get_split(graphs: GraphSet, fold: int, mirror: Path | None = None) -> Split:
    """Return split number ``fold`` of the ten, published if there is one, otherwise drawn."""
    _check_fold(fold)
    published = _published(graphs, fold, mirror) if mirror is not None else None
    return published or draw_split(graphs, fold)


def draw_split(graphs: GraphSet, fold: int) -> Split:
    """Draw split number ``fold``, stratified by class."""
    _check_fold(fold)
    y = graphs.y.numpy()
    known = np.flatnonzero(y >= 0)
    if len(known) < NUM_SPLITS:
        raise DataError(
            f"{graphs.name} has {len(known)} {graphs.task}s with a class: at least {NUM_SPLITS} "
            "are needed for splits"
        )
    if len(set(y[known].tolist())) < 2:
        raise DataError(f"{graphs.name} has one class only: there is nothing to learn")
    if graphs.task == "node":
        deck = _deal(y[known], 10, seed=fold)
        parts = known[deck < 6], known[(deck == 6) | (deck == 7)], known[deck > 7]
    else:
        outer = _deal(y[known], NUM_SPLITS, seed=0)
        rest, test = known[outer != fold], known[outer == fold]
        inner = _deal(y[rest], 10, seed=1 + fold)
        parts = rest[inner != 0], rest[inner == 0], test
    return Split(f"drawn-{fold}", *(torch.from_numpy(part) for part in parts))


def _check_fold(fold: int) -> None:
    if not 0 <= fold < NUM_SPLITS:
        raise DataError(f"fold is {fold}: it must be from 0 to {NUM_SPLITS - 1}")


def _deal(y: NDArray[Any], num_hands: int, seed: int) -> NDArray[Any]:
    """Deal the members of each class in turn, shuffled: every hand gets its share of each class."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    hand = np.empty(len(y), dtype=np.int64)
    hand[order] = np.arange(len(y)) % num_hands
    return hand


def _published(graphs: GraphSet, fold: int, mirror: Path) -> Split | None:
    if graphs.task == "graph":
        for name in (graphs.name, f"{graphs.name}_full"):
            path = mirror / "splits" / f"{name}_splits.json"
            if path.is_file():
                return _graph_split(graphs, fold, path)
    elif graphs.name == "Chameleon-filtered":
        path = mirror / "wikipedia" / "chameleon_filtered.npz"
        if path.is_file():
            return _node_split(graphs, fold, path)
    else:
        path = mirror / "splits" / f"{graphs.name.lower()}_split_0.6_0.2_{fold}.npz"
        if path.is_file():
            return _node_split(graphs, fold, path)
    return None


def _graph_split(graphs: GraphSet, fold: int, path: Path) -> Split | None:
    try:
        record = json.loads(path.read_text())[fold]
        inner = record["model_selection"][0]
        parts = [record["test"], inner["train"], inner["validation"]]
        test, train, validation = (torch.tensor(sorted(part), dtype=torch.long) for part in parts)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path}: not a file of splits ({error!r})") from error
    everything = torch.cat([test, train, validation]).sort().values
    if not torch.equal(everything, torch.arange(graphs.num_graphs)):
        return None  # made for another version of the set
    return Split(f"published-{fold}", train, validation, test)


def _node_split(graphs: GraphSet, fold: int, path: Path) -> Split | None:
    try:
        with np.load(path, allow_pickle=False) as record:
            one_file = "train_masks" in record
            masks = [
                record[f"{part}_masks"][fold] if one_file else record[f"{part}_mask"]
                for part in ("train", "val", "test")
            ]
            masks = [mask.astype(bool) for mask in masks]
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise DataError(f"{path}: not a file of masks ({error})") from None
    stacked = np.stack(masks) if len({m.shape for m in masks}) == 1 else np.ones((3, 0))
    if stacked.shape[1:] != (graphs.num_nodes,) or stacked.sum(0).max() > 1:
        return None
    known = graphs.y.numpy() >= 0
    train, validation, test = (torch.from_numpy(np.flatnonzero(m & known)) for m in masks)
    return Split(f"published-{fold}", train, validation, test)
