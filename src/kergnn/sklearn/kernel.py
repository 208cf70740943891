"""The random-walk kernel between whole graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from kergnn._checks import check_choice, check_integer
from kergnn.data import Features, GraphSet
from kergnn.data.adapters import read_graphs
from kergnn.data.records import GraphRecord, join, local_edges
from kergnn.egographs import EgoGraphs
from kergnn.engine import evaluate

# Graphs that are filters at the same time; the fused engine takes them in blocks of this many.
_BLOCK = 16


class RandomWalkKernel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Compare whole graphs by the walks that they have in common.

    .. math::
        K(G, G') = \sum_{p=0}^P \lambda_p\, K_p(G, G')

    where :math:`K_p` is the kernel of a KerGNN layer with all of :math:`G` as the ego-graph and
    :math:`G'` as the filter. It is positive semi-definite. Use it as a kernel of GraKeL is used::

        K = RandomWalkKernel().fit_transform(graphs)      # (G, G)
        SVC(kernel="precomputed").fit(K, y)
        make_pipeline(RandomWalkKernel(), SVC(kernel="precomputed")).fit(graphs, y)

    Args:
        kernel: ``"rw-step"`` compares walks node by node: with labels it counts the walks that two
            graphs have in common. ``"rw"`` compares their two ends only.
        num_steps: longest walk P.
        step_weights: :math:`\lambda`: P + 1 numbers that are not negative, ``None`` for ones.
        normalize: whether :math:`K(G, G') / \sqrt{K(G, G)\, K(G', G')}` is returned; 0 where a
            graph has nothing to compare.
        features: what nodes are compared by, see :class:`KerGNNClassifier`; ``None`` for labels and
            attributes where there are any, otherwise nothing (all nodes are alike).
        node_labels, node_attributes: see :class:`KerGNNClassifier`.
    """

    def __init__(
        self,
        *,
        kernel: str = "rw-step",
        num_steps: int = 3,
        step_weights: Sequence[float] | None = None,
        normalize: bool = True,
        features: str | None = None,
        node_labels: str | list[str] | None = None,
        node_attributes: str | list[str] | None = None,
    ) -> None:
        self.kernel = kernel
        self.num_steps = num_steps
        self.step_weights = step_weights
        self.normalize = normalize
        self.features = features
        self.node_labels = node_labels
        self.node_attributes = node_attributes

    def fit(self, X: Any, y: Any = None) -> RandomWalkKernel:
        """Keep the graphs ``X`` to compare others with."""
        check_choice("kernel", self.kernel, ["rw", "rw-step"])
        self._weights()
        records = self._read(X, as_before=False)
        graphs = _joined(records)
        parts = (("label", graphs.labels), ("attr", graphs.attributes))
        found = "+".join(name for name, tensor in parts if tensor is not None)
        every = torch.arange(graphs.num_nodes)
        self.features_ = Features.fit(self.features or found or "const", graphs, every)
        if self.features_.vocabulary:
            raise ValueError(f"features is {self.features!r}: the kernel has no use for words")
        self.n_features_in_ = len(self.features_.names)
        self.graphs_ = records
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the kernel of graphs with those of ``fit``: (graphs, graphs of fit)."""
        check_is_fitted(self, "graphs_")
        left, right = _joined(self._read(X, as_before=True)), _joined(self.graphs_)
        K = self._matrix(left, right, self.features_)
        if not self.normalize:
            return K
        return _cosine(K, self._self_values(left), self._self_values(right))

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float64]:
        """Return the kernel of all pairs of graphs: (graphs, graphs)."""
        self.fit(X)
        # The smaller graph of a pair is the filter, which costs the square of its size.
        order = np.argsort([r.num_nodes for r in self.graphs_], kind="stable")
        graphs = _joined([self.graphs_[i] for i in order])
        K = np.empty((graphs.num_graphs, graphs.num_graphs))
        for first in range(0, graphs.num_graphs, _BLOCK):
            block = torch.arange(first, min(first + _BLOCK, graphs.num_graphs))
            rest = torch.arange(first, graphs.num_graphs)
            values = self._matrix(graphs.select(rest), graphs.select(block), self.features_)
            K[np.ix_(order[rest], order[block])] = values
            K[np.ix_(order[block], order[rest])] = values.T
        K = (K + K.T) / 2  # equal but for rounding
        return _cosine(K, np.diagonal(K), np.diagonal(K)) if self.normalize else K

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a list of graphs is no table
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _read(self, X: Any, as_before: bool) -> list[GraphRecord]:
        like = self.features_.columns if as_before else None
        return read_graphs(X, self.node_labels, self.node_attributes, like=like)

    def _weights(self) -> Tensor:
        count = check_integer("num_steps", self.num_steps, minimum=0) + 1
        given = (
            np.ones(count) if self.step_weights is None else np.asarray(self.step_weights, float)
        )
        if given.shape != (count,) or not ((given >= 0) & (given < np.inf)).all():
            raise ValueError(
                f"step_weights is {self.step_weights!r}: it must hold num_steps + 1 = {count} "
                "numbers that are not negative"
            )
        return torch.from_numpy(given)

    def _matrix(self, left: GraphSet, right: GraphSet, features: Features) -> NDArray[np.float64]:
        """Return K of every graph on the left with every one on the right."""
        K = np.zeros((left.num_graphs, right.num_graphs))
        filled = left.size.nonzero().flatten()
        x, other = (features(graphs, unknown="zeros").double() for graphs in (left, right))
        ego, weights = whole_graphs(left), self._weights()
        for block in torch.split(right.size.argsort(stable=True), _BLOCK):
            filters = as_filters(right, other, block)
            K_p = evaluate(self.kernel, x, ego, *filters, self.num_steps)[:, left.ptr[filled]]
            values = torch.einsum("p,pgi->gi", weights, K_p)
            K[np.ix_(filled.numpy(), block.numpy())] = values.numpy()
        return K

    def _self_values(self, graphs: GraphSet) -> NDArray[np.float64]:
        """Return K(G, G) of every graph, with all its labels, also those that fit did not see."""
        own = self.features_.with_labels_of(graphs)
        diagonal = np.zeros(graphs.num_graphs)
        for block in torch.split(graphs.size.argsort(stable=True), _BLOCK):
            block = block.sort().values
            part = graphs.select(block)
            diagonal[block.numpy()] = np.diagonal(self._matrix(part, part, own))
        return diagonal


def whole_graphs(graphs: GraphSet) -> EgoGraphs:
    """Return every graph as the ego-graph of its first node, and empty ones for all other nodes."""
    size = torch.zeros(graphs.num_nodes, dtype=torch.long)
    filled = graphs.size > 0
    size[graphs.ptr[:-1][filled]] = graphs.size[filled]
    row, col = graphs.simple_edges
    return EgoGraphs(
        index=torch.arange(graphs.num_nodes),
        size=size,
        hop=torch.zeros(graphs.num_nodes, dtype=torch.long),
        degree=graphs.degree,
        neighbor=col - graphs.ptr[graphs.graph_of[row]],
    )


def as_filters(graphs: GraphSet, x: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """Return adjacency (D, m, m) and attributes (D, m, d) of graphs, filled up with zeros."""
    m = max(int(graphs.size[which].max()), 1)
    B = x.new_zeros(len(which), m, m)
    W = x.new_zeros(len(which), m, x.size(1))
    ptr, edges = graphs.ptr.tolist(), local_edges(graphs)
    for i, g in enumerate(which.tolist()):
        row, col = edges[g][:, edges[g][0] != edges[g][1]]
        B[i, row, col] = B[i, col, row] = 1
        W[i, : ptr[g + 1] - ptr[g]] = x[ptr[g] : ptr[g + 1]]
    return B, W


def _cosine(
    K: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Divide by the roots of the self-values; 0 where one of them is."""
    scale = np.sqrt(np.outer(left, right))
    return np.divide(K, scale, out=np.zeros_like(K), where=scale > 0)


def _joined(records: list[GraphRecord]) -> GraphSet:
    return join("X", records, [None] * len(records))
