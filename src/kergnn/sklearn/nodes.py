"""The classifier of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from kergnn.data import Task
from kergnn.sklearn.classifier import checked_classes
from kergnn.sklearn.estimator import KerGNNEstimator


class KerGNNNodeClassifier(ClassifierMixin, KerGNNEstimator):  # type: ignore[misc]
    """Classify the nodes of a graph by a KerGNN.

    ``fit(graph, y)`` takes one graph (or a list of graphs) of any kind that
    :class:`KerGNNClassifier` takes, and a class for every node, in the order of the nodes, or
    ``None`` (or NaN) where it is not known; for a networkx graph also a dictionary from nodes to
    classes. The nodes without a class are seen as neighbours, and ``predict(graph)`` returns the
    classes of all nodes.

    Parameters and attributes are those of :class:`KerGNNClassifier`. Samples are nodes of one
    graph, so cross-validation means to hide classes: ``y`` with ``None`` in the test part.
    """

    _task: Task = "node"

    def fit(self, X: Any, y: Any) -> KerGNNNodeClassifier:
        """Train on the nodes of ``X`` whose class in ``y`` is known."""
        records = self._read(X, as_before=self.warm_start)
        values = _by_node(X, y, sum(record.num_nodes for record in records))
        known = np.array([not _unknown(v) for v in values], dtype=bool)
        if not known.any():
            raise ValueError("y has no class: at least one node needs one")
        codes = np.full(len(values), -1)
        given = None if y is None else [v for v in values if not _unknown(v)]
        codes[known], classes = checked_classes(given, type(self).__name__)
        self._fit(records, codes, classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the probability of every class for every node: (nodes, classes)."""
        return self._probabilities(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every node."""
        best = self._probabilities(X).argmax(1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of every node."""
        return self._embeddings(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on the nodes whose class in ``y`` is known."""
        predicted = self.predict(X)
        values = _by_node(X, y, len(predicted))
        right = [p == v for p, v in zip(predicted, values, strict=True) if not _unknown(v)]
        if not right:
            raise ValueError("y has no class: at least one node needs one")
        return float(np.mean(right))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _by_node(X: Any, y: Any, num_nodes: int) -> list[Any]:
    """Return a class, or ``None``, for every node."""
    if isinstance(y, Mapping):
        if not isinstance(X, nx.Graph):
            raise ValueError("y is a dictionary: X must then be one networkx graph")
        strange = [node for node in y if node not in X]
        if strange:
            raise ValueError(f"y has a class for {strange[0]!r}, which is not a node of X")
        return [y.get(node) for node in X]
    values = np.asarray(y, dtype=object).tolist() if y is not None else [None]
    if not isinstance(values, list) or len(values) != num_nodes:
        raise ValueError(f"y must have a class, or None, for each of the {num_nodes} nodes")
    return values


def _unknown(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN
