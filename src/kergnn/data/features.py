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
| ``neighbors`` | which nodes are its neighbours; of a set that is a single graph |
| ``const`` | the number one |
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from kergnn._checks import check_choice
from kergnn.data.colors import FEWEST_NODES, Color, Labels, color_features, frequent_colors
from kergnn.data.columns import column_order, label_positions, standard, standardised
from kergnn.data.degreebins import bin_names, degree_limits
from kergnn.data.edgefeatures import EdgeNames, edge_features, find_edge_names
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.returns import RETURN_STEPS
from kergnn.data.subtrees import Subtrees, shared_subtrees, subtree_words

UNKNOWN = ("error", "zeros")
RECIPES = (
    "label",
    "attr",
    "degree",
    "onehot-degree",
    "binned-degree",
    "wl",
    "subtrees",
    "walks",
    "neighbors",
    "const",
)
_ONE_HOT_DEGREE = ("onehot-degree", "binned-degree")


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
        label_names: for ``label``, and ``wl`` and ``subtrees`` where there are labels: the names of
            the labels of each label column.
        mean: for ``attr``: what is subtracted from every column.
        scale: for ``attr``: what every column is divided by.
        max_degree: for ``onehot-degree`` and ``binned-degree``: larger degrees count as this one.
        label_columns: likewise what every label column is called, if anything.
        attribute_columns: for ``attr``: what every attribute column is called, if anything.
        walk_mean: for ``walks``: what is subtracted from every column.
        walk_scale: for ``walks``: what every column is divided by.
        edge_names: by their name, the values of edges, each of which is a feature for a network
            that looks at edges; whatever the recipe.
        num_nodes: for ``neighbors``: the number of nodes of the graph.
        colors: for ``wl``: the colours that are features.
        subtrees: for ``subtrees``: those that are known.
    """

    recipe: str
    label_names: tuple[tuple[str, ...], ...] = ()
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    max_degree: int = 0
    label_columns: tuple[str, ...] = ()
    attribute_columns: tuple[str, ...] = ()
    walk_mean: tuple[float, ...] = ()
    walk_scale: tuple[float, ...] = ()
    edge_names: EdgeNames = ()
    num_nodes: int = 0
    colors: tuple[Color, ...] = ()
    subtrees: Subtrees = ()

    @classmethod
    def fit(cls, recipe: str, graphs: GraphSet, train_nodes: Tensor) -> Features:
        """Fit a recipe; ``train_nodes`` are the nodes of the training part."""
        parts = _parts(recipe)
        label_names: tuple[tuple[str, ...], ...] = ()
        mean, scale = torch.empty(0), torch.empty(0)
        walk_mean, walk_scale = torch.empty(0), torch.empty(0)
        if "label" in parts and graphs.labels is None:
            raise DataError(f"features is {recipe!r}, but {graphs.name} has no node labels")
        labelled = graphs.labels is not None and bool({"label", "wl", "subtrees"} & {*parts})
        if labelled:
            label_names = graphs.label_names
        start = None if graphs.labels is None else (graphs.labels, graphs.label_names)
        subtrees: Subtrees = ()
        if "subtrees" in parts:
            subtrees = shared_subtrees(graphs, start, train_nodes.numpy())
        colors: tuple[Color, ...] = ()
        if "wl" in parts:
            colors = frequent_colors(graphs, start, train_nodes.numpy())
            if not colors and parts == ["wl"]:
                raise DataError(
                    f"features is {recipe!r}, but no {FEWEST_NODES} nodes of the training part of "
                    f"{graphs.name} have surroundings that are alike: join it to others by +"
                )
        if "attr" in parts:
            if graphs.attributes is None:
                raise DataError(f"features is {recipe!r}, but {graphs.name} has no attributes")
            rows = graphs.attributes[train_nodes].double()
            binary = ((rows == 0) | (rows == 1)).all(0)
            mean, scale = standard(rows)
            mean, scale = mean.masked_fill(binary, 0), scale.masked_fill(binary, 1)
        if "walks" in parts:
            walk_mean, walk_scale = standard(graphs.return_probability[train_nodes])
        if "neighbors" in parts and graphs.num_graphs != 1:
            raise DataError(
                f"features is {recipe!r}: 'neighbors' is for a set that is a single graph, and "
                f"{graphs.name} has {graphs.num_graphs}"
            )
        degree = graphs.degree[train_nodes]
        return cls(
            recipe=recipe,
            label_names=label_names,
            mean=tuple(mean.tolist()),
            scale=tuple(scale.tolist()),
            max_degree=int(degree.max()) if len(degree) and {*parts} & {*_ONE_HOT_DEGREE} else 0,
            label_columns=graphs.label_columns if labelled else (),
            attribute_columns=graphs.attribute_columns if "attr" in parts else (),
            walk_mean=tuple(walk_mean.tolist()),
            walk_scale=tuple(walk_scale.tolist()),
            edge_names=find_edge_names(graphs),
            num_nodes=graphs.num_nodes if "neighbors" in parts else 0,
            colors=colors,
            subtrees=subtrees,
        )

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
        made = []
        for part in self._column_parts:
            if part == "label":
                made.append(self._labels(graphs, unknown))
            elif part == "attr":
                made.append(self._attributes(graphs))
            elif part == "degree":
                made.append(graphs.degree.float().unsqueeze(1))
            elif part == "onehot-degree":
                degree = graphs.degree.clamp(max=self.max_degree)
                made.append(one_hot(degree, self.max_degree + 1).float())
            elif part == "binned-degree":
                limits = torch.tensor(degree_limits(self.max_degree))
                degree = graphs.degree.clamp(max=self.max_degree)
                bins = torch.searchsorted(limits, degree, right=True) - 1
                made.append(one_hot(bins, len(limits)).float())
            elif part == "wl":
                made.append(self._colors(graphs, unknown))
            elif part == "walks":
                made.append(
                    standardised(graphs.return_probability, self.walk_mean, self.walk_scale)
                )
            elif part == "neighbors":
                made.append(self._neighbors(graphs))
            else:
                made.append(torch.ones(graphs.num_nodes, 1))
        if self.vocabulary:
            words = subtree_words(graphs, self._start(graphs, unknown), self.subtrees)
            made.append(torch.from_numpy(words))
        return torch.cat(made, dim=1)

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
        columns: list[str] = []
        for part in self._column_parts:
            if part == "label":
                for i, names in enumerate(self.label_names):
                    prefix = f"{self.label_columns[i]}=" if len(self.label_columns) > 1 else ""
                    columns += [f"{prefix}{name}" for name in names]
            elif part == "attr":
                given = self.attribute_columns or ("attr",) * len(self.mean)
                total, seen = Counter(given), Counter[str]()
                for name in given:
                    columns.append(
                        f"{name}{seen[name]}" if name == "attr" or total[name] > 1 else name
                    )
                    seen[name] += 1
            elif part == "onehot-degree":
                columns += [f"degree={i}" for i in range(self.max_degree + 1)]
            elif part == "binned-degree":
                columns += bin_names(degree_limits(self.max_degree))
            elif part == "wl":
                columns += [name for _, _, name in self.colors]
            elif part == "walks":
                columns += [f"back after {steps}" for steps in RETURN_STEPS]
            elif part == "neighbors":
                columns += [f"neighbor {node}" for node in range(self.num_nodes)]
            else:
                columns.append(part)
        return columns + [f"subtree of depth {k + 1}" for k in range(len(self.subtrees))]

    @property
    def vocabulary(self) -> tuple[int, ...]:
        """Of each of the last columns, which are words and no numbers, how many there are."""
        return tuple(map(len, self.subtrees))

    @property
    def is_one_hot(self) -> bool:
        """Whether a node's features are a single one among zeros: its label or degree."""
        return self.recipe in _ONE_HOT_DEGREE or (
            self.recipe == "label" and len(self.label_names) == 1
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the labels and of the attributes, each once."""
        return self.label_columns, tuple(dict.fromkeys(self.attribute_columns))

    @property
    def _column_parts(self) -> list[str]:
        """The parts of the recipe that are numbers, in the order of their columns."""
        return [part for part in _parts(self.recipe) if part != "subtrees"]

    def _labels(self, graphs: GraphSet, unknown: str) -> Tensor:
        positions = self._label_positions(graphs, unknown).T
        made = [
            one_hot(position + 1, len(names) + 1)[:, 1:].float()
            for position, names in zip(positions, self.label_names, strict=True)
        ]
        return torch.cat(made, dim=1)

    def _colors(self, graphs: GraphSet, unknown: str) -> Tensor:
        start = self._start(graphs, unknown)
        return torch.from_numpy(color_features(graphs, start, self.colors))

    def _start(self, graphs: GraphSet, unknown: str) -> Labels | None:
        """Return what colours and subtrees are made of: labels, or degrees where there are none."""
        if not self.label_names:
            return None
        return self._label_positions(graphs, unknown), self.label_names

    def _label_positions(self, graphs: GraphSet, unknown: str) -> Tensor:
        return label_positions(graphs, self.label_names, self.label_columns, unknown)

    def _attributes(self, graphs: GraphSet) -> Tensor:
        width = 0 if graphs.attributes is None else graphs.attributes.size(1)
        if graphs.attributes is None or width != len(self.mean):
            raise DataError(
                f"{graphs.name} has {width} attributes a node, the model needs {len(self.mean)}"
            )
        order = column_order(graphs.name, graphs.attribute_columns, self.attribute_columns, width)
        return standardised(graphs.attributes[:, order], self.mean, self.scale)

    def _neighbors(self, graphs: GraphSet) -> Tensor:
        if graphs.num_graphs != 1 or graphs.num_nodes != self.num_nodes:
            raise DataError(
                f"{graphs.name} has {graphs.num_graphs} graphs and {graphs.num_nodes} nodes: the "
                f"model knows the neighbors in one graph of {self.num_nodes} nodes"
            )
        rows = torch.zeros(self.num_nodes, self.num_nodes)
        rows[tuple(graphs.simple_edges)] = 1
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Features:
        """Undo :meth:`to_dict`, also after JSON made lists of the tuples."""
        return cls(
            recipe=str(values["recipe"]),
            label_names=tuple(tuple(names) for names in values["label_names"]),
            mean=tuple(values["mean"]),
            scale=tuple(values["scale"]),
            max_degree=int(values["max_degree"]),
            label_columns=tuple(values.get("label_columns", ())),
            attribute_columns=tuple(values.get("attribute_columns", ())),
            walk_mean=tuple(values.get("walk_mean", ())),
            walk_scale=tuple(values.get("walk_scale", ())),
            edge_names=tuple((name, tuple(known)) for name, known in values.get("edge_names", ())),
            num_nodes=int(values.get("num_nodes", 0)),
            colors=tuple((k, number, name) for k, number, name in values.get("colors", ())),
            subtrees=tuple(map(tuple, values.get("subtrees", ()))),
        )


def _parts(recipe: str) -> list[str]:
    parts = recipe.split("+")
    for part in parts:
        if part not in RECIPES:
            raise DataError(
                f"features is {recipe!r}: {part!r} is not one of {', '.join(RECIPES)} "
                "(join several by +)"
            )
        if parts.count(part) > 1:
            raise DataError(f"features is {recipe!r}: {part!r} is there twice")
    if parts == ["subtrees"]:
        raise DataError("features is 'subtrees': join it to others by +, such as label+subtrees")
    return parts
