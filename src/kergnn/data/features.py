"""Feature recipes: how node features are made of what a data set has.

A recipe is one or more of these names, joined by ``+``, such as ``label+attr``:

| name | features of a node |
|---|---|
| ``label`` | one-hot vector of each of its labels |
| ``attr`` | its attributes, standardised on the training part; columns of zeros and ones stay |
| ``degree`` | its number of neighbours |
| ``onehot-degree`` | one-hot vector of its degree, up to the largest of the training part |
| ``binned-degree`` | the same of bins 0, 1, 2, 3, 4 to 5, 6 to 7, 8 to 11, ...: two an octave |
| ``wl`` | one-hot vectors of its frequent Weisfeiler-Lehman colours after one and two rounds |
| ``subtrees`` | which subtrees of depth 1 to 5 it is the root of, as words; beside others only |
| ``walks`` | how likely a random walk is back after 2 to 12 steps, standardised likewise |
| ``cliques`` | its shares of the maximal cliques of 1, 2, 3, 4 to 5, ... nodes, standardised |
| ``neighbors`` | which nodes are its neighbours; of a set that is a single graph |
| ``const`` | the number one |
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kergnn._checks import check_choice
from kergnn._hints import did_you_mean
from kergnn.data.colors import FEWEST_NODES
from kergnn.data.edgefeatures import EdgeNames, edge_features, find_edge_names
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.labelparts import FrequentColors, OfLabels, OneHotLabels, SubtreeWords
from kergnn.data.parts import (
    Attributes,
    BinnedDegree,
    Cliques,
    Constant,
    Degree,
    Neighbors,
    OneHotDegree,
    Part,
    Walks,
)
from kergnn.data.subtrees import Subtrees

UNKNOWN = ("error", "zeros")
_PARTS: dict[str, type[Part]] = {
    "label": OneHotLabels,
    "attr": Attributes,
    "degree": Degree,
    "onehot-degree": OneHotDegree,
    "binned-degree": BinnedDegree,
    "wl": FrequentColors,
    "subtrees": SubtreeWords,
    "walks": Walks,
    "cliques": Cliques,
    "neighbors": Neighbors,
    "const": Constant,
}
RECIPES = tuple(_PARTS)


def default_recipe(graphs: GraphSet) -> str:
    """Return labels and attributes where they exist, otherwise the degree."""
    parts = [
        name
        for name, tensor in (("label", graphs.labels), ("attr", graphs.attributes))
        if tensor is not None
    ]
    return "+".join(parts) or "degree"


@dataclass(frozen=True)
class Features:
    """A recipe fitted to a training part; it turns any fitting set of graphs into a matrix.

    Args:
        recipe: the recipe's name.
        parts: what its parts have learned, in the order of their columns; words are the last.
        edge_names: by their name, the values of edges, each of which is a feature for a network
            that looks at edges; whatever the recipe.
    """

    recipe: str
    parts: tuple[Part, ...]
    edge_names: EdgeNames = ()

    @classmethod
    def fit(cls, recipe: str, graphs: GraphSet, train_nodes: Tensor) -> Features:
        """Fit a recipe; ``train_nodes`` are the nodes of the training part."""
        names = _part_names(recipe)
        try:
            parts = tuple(_PARTS[name].fit(graphs, train_nodes) for name in names)
        except DataError as error:
            raise DataError(f"features is {recipe!r}, but {error}") from None
        made = cls(recipe, parts, find_edge_names(graphs))
        if recipe == "wl" and not made.names:
            raise DataError(
                f"features is {recipe!r}, but no {FEWEST_NODES} nodes of the training part of "
                f"{graphs.name} have surroundings that are alike: join it to others by +"
            )
        return made

    def __call__(self, graphs: GraphSet, unknown: str = "error") -> Tensor:
        """Return the features (N, d) of all nodes; words are their last columns.

        Args:
            graphs: the graphs.
            unknown: what to do with a node label that the fitted set did not have: ``"error"``, or
                ``"zeros"`` for a node without this label, with a warning.
        """
        check_choice("unknown", unknown, UNKNOWN)
        if graphs.num_nodes == 0:  # of what, nobody knows
            return torch.empty(0, len(self.names))
        return torch.cat([part(graphs, unknown) for part in self.parts], dim=1)

    def of_edges(self, graphs: GraphSet, unknown: str = "error") -> Tensor | None:
        """Return one-hot features (E', e) of ``graphs.simple_edges``, or none if there are none.

        An edge without a value has zeros; ``unknown`` is as for labels of nodes.
        """
        check_choice("unknown", unknown, UNKNOWN)
        return edge_features(self.edge_names, graphs, unknown)

    @property
    def edge_channels(self) -> int:
        """Number of features of an edge."""
        return sum(len(known) for _, known in self.edge_names)

    @property
    def names(self) -> list[str]:
        """What every column of the features is."""
        return [name for part in self.parts for name in part.names]

    @property
    def subtrees(self) -> Subtrees:
        """The subtrees that are words."""
        return next((p.subtrees for p in self.parts if isinstance(p, SubtreeWords)), ())

    @property
    def vocabulary(self) -> tuple[int, ...]:
        """Of each of the last columns, which are words and no numbers, how many there are."""
        return tuple(map(len, self.subtrees))

    @property
    def is_one_hot(self) -> bool:
        """Whether a node's features are a single one among zeros: its label or degree."""
        if len(self.parts) > 1:
            return False
        (part,) = self.parts
        if isinstance(part, OneHotLabels):
            return len(part.label_names) == 1
        return isinstance(part, (BinnedDegree, OneHotDegree))

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the labels and of the attributes that are needed, each once."""
        labels = (part.label_columns for part in self.parts if isinstance(part, OfLabels))
        attributes = (part.columns for part in self.parts if isinstance(part, Attributes))
        return next(labels, ()), tuple(dict.fromkeys(next(attributes, ())))

    def with_labels_of(self, graphs: GraphSet) -> Features:
        """Return the features with columns for the labels of a set in the place of those known."""
        parts = (
            replace(part, label_names=graphs.label_names, label_columns=graphs.label_columns)
            if isinstance(part, OfLabels)
            else part
            for part in self.parts
        )
        return replace(self, parts=tuple(parts))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Features:
        """Undo :meth:`to_dict`, also after JSON made lists of the tuples."""
        recipe = str(values["recipe"])
        if "parts" not in values:
            raise DataError("its features are those of an earlier version: train again")
        stored = zip(_part_names(recipe), values["parts"], strict=True)
        parts = tuple(
            _PARTS[name](**{key: _as_tuple(value) for key, value in learned.items()})
            for name, learned in stored
        )
        return cls(recipe, parts, _as_tuple(values["edge_names"]))


def _part_names(recipe: str) -> list[str]:
    """Return the parts of a recipe in the order of their columns: words are the last."""
    parts = recipe.split("+")
    for part in parts:
        if part not in _PARTS:
            raise DataError(
                f"features is {recipe!r}: {part!r}{did_you_mean(part, RECIPES)} is not one of "
                f"{', '.join(RECIPES)} (join several by +, without blanks)"
            )
        if parts.count(part) > 1:
            raise DataError(f"features is {recipe!r}: {part!r} is there twice")
    if parts == ["subtrees"]:
        raise DataError("features is 'subtrees': join it to others by +, such as label+subtrees")
    return sorted(parts, key="subtrees".__eq__)


def _as_tuple(value: Any) -> Any:
    """Return lists, however deep, as tuples."""
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value
