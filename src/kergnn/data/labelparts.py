"""The parts of a feature recipe that are made of labels: these, their colours, their subtrees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from kergnn.data.colors import Color, Labels, color_features, frequent_colors
from kergnn.data.columns import label_positions
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.subtrees import Subtrees, shared_subtrees, subtree_words


@dataclass(frozen=True)
class OfLabels:
    """What is made of labels.

    Args:
        label_names: the names of the labels of every column of labels.
        label_columns: what every column of labels is called, if anything.
    """

    label_names: tuple[tuple[str, ...], ...]
    label_columns: tuple[str, ...]

    def start(self, graphs: GraphSet, unknown: str) -> Labels | None:
        """Return what colours begin with: labels, or degrees where none were known."""
        return (self.positions(graphs, unknown), self.label_names) if self.label_names else None

    def positions(self, graphs: GraphSet, unknown: str) -> Tensor:
        """Return where every node's labels (N, L) stand among the names, -1 for nowhere."""
        return label_positions(graphs, self.label_names, self.label_columns, unknown)


@dataclass(frozen=True)
class OneHotLabels(OfLabels):
    """Which label it is, of every column of labels."""

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> OneHotLabels:
        if graphs.labels is None:
            raise DataError(f"{graphs.name} has no node labels")
        return cls(graphs.label_names, graphs.label_columns)

    @property
    def names(self) -> list[str]:
        made = []
        for i, names in enumerate(self.label_names):
            prefix = f"{self.label_columns[i]}=" if len(self.label_columns) > 1 else ""
            made += [f"{prefix}{name}" for name in names]
        return made

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        columns = zip(self.positions(graphs, unknown).T, self.label_names, strict=True)
        made = [one_hot(column + 1, len(names) + 1)[:, 1:] for column, names in columns]
        return torch.cat(made, dim=1).float()


@dataclass(frozen=True)
class FrequentColors(OfLabels):
    """Which of the frequent colours of the Weisfeiler-Lehman test a node has."""

    colors: tuple[Color, ...]

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> FrequentColors:
        colors = frequent_colors(graphs, _own_labels(graphs), nodes.numpy())
        return cls(*_known_labels(graphs), colors)

    @property
    def names(self) -> list[str]:
        return [name for _, _, name in self.colors]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return torch.from_numpy(color_features(graphs, self.start(graphs, unknown), self.colors))


@dataclass(frozen=True)
class SubtreeWords(OfLabels):
    """Which of the subtrees that several graphs share a node is the root of: words, no numbers."""

    subtrees: Subtrees

    @classmethod
    def fit(cls, graphs: GraphSet, nodes: Tensor) -> SubtreeWords:
        subtrees = shared_subtrees(graphs, _own_labels(graphs), nodes.numpy())
        return cls(*_known_labels(graphs), subtrees)

    @property
    def names(self) -> list[str]:
        return [f"subtree of depth {k + 1}" for k in range(len(self.subtrees))]

    def __call__(self, graphs: GraphSet, unknown: str) -> Tensor:
        return torch.from_numpy(subtree_words(graphs, self.start(graphs, unknown), self.subtrees))


def _own_labels(graphs: GraphSet) -> Labels | None:
    return None if graphs.labels is None else (graphs.labels, graphs.label_names)


def _known_labels(graphs: GraphSet) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    return ((), ()) if graphs.labels is None else (graphs.label_names, graphs.label_columns)
