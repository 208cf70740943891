"""The classifier of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from kergnn.data import Task
from kergnn.sklearn.estimator import KerGNNEstimator


class KerGNNClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    KerGNNEstimator,
):
    r"""Classify graphs by a KerGNN, in the way of scikit-learn.

    ``fit(graphs, y)`` takes a list of graphs: networkx graphs, PyG ``Data``, GraKeL graphs, SMILES
    strings, adjacency matrices, or a :class:`~kergnn.data.GraphSet`; see
    :mod:`kergnn.data.adapters`.

    Args:
        hidden_channels: number of filters of a layer.
        num_layers: number of layers.
        filter_size: number of nodes of a filter.
        num_steps: longest walk.
        kernel: ``"rw"``, ``"rw-step"``, ``"drw"``, ``"gcn"``, or several, as in
            ``"rw:16, drw:16"``.
        num_hops: radius of the neighbourhoods (ego-graphs) that filters are compared with.
        max_nodes: largest size of a neighbourhood, ``None`` for no limit.
        input_channels: size of a linear map of the node features, 0 for none; ``None`` for 64 where
            there are more than 100 features or one-hot degrees.
        normalize, update, step_weights: see :class:`~kergnn.KerGNNConv`; step weights as in
            ``"1, 0.5, 0.1"`` or ``"trainable"``.
        norm, readout, restart: see :class:`~kergnn.KerGNN`; restart is for nodes.
        dropout: ``None`` for 0.2 (graphs) or 0.5 (nodes).
        input_dropout: ``None`` for 0 (graphs) or 0.5 (nodes).
        features: what nodes are described by: ``label``, ``attr``, ``degree``, ``onehot-degree``,
            ``binned-degree``, ``wl``, ``subtrees``, ``walks``, ``cliques``, ``const``, or several
            joined by ``+``, see :mod:`kergnn.data.features`; ``None`` for labels and attributes
            where there are any, otherwise the degree.
        node_labels: names of the node attributes that are discrete labels.
        node_attributes: names of those that are numbers. Without both, all node attributes of
            networkx graphs are used, see :func:`kergnn.as_graphs`.
        epochs: largest number of epochs.
        batch_size: number of graphs of a batch.
        learning_rate: learning rate of Adam.
        schedule: ``"halve"`` the learning rate every 50 epochs, ``"cosine"`` or ``"constant"``.
        weight_decay: weight decay.
        class_weights: whether rare classes weigh more.
        metric: what selects the epoch: ``"accuracy"``, ``"balanced_accuracy"``, ``"macro_f1"`` or
            ``"roc_auc"``.
        early_stopping: whether a part of the graphs is held out to select the epoch and to stop
            early. Otherwise all graphs are trained on, and select the epoch as well.
        validation_fraction: that part, at most 0.5; it is stratified.
        patience: number of epochs without improvement after which to stop.
        keep_epoch: ``"last"`` to train all epochs and keep the last one, for the schedule
            ``"cosine"`` and few graphs; with ``early_stopping=False`` none is held out.
        warm_start: whether ``fit`` begins with the weights of the last ``fit``.
        n_jobs: number of threads, as in scikit-learn: ``None`` for one, -1 for all cores. Results
            depend on it in the last digits.
        verbose: whether to show progress.
        random_state: seed of all randomness.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.

    Attributes:
        classes_: the classes.
        n_features_in_: number of node features.
        features_: how node features are made; ``features_.names`` says what they are.
        model_: the trained :class:`~kergnn.KerGNN`.
        filters_: adjacency and attributes of the filters, for every layer.
        n_iter_: number of epochs that were trained.
        best_epoch_: the epoch whose weights were kept.
        history_: figures of every epoch.

    If ``fit`` is interrupted (``KeyboardInterrupt``), the best model so far is kept, and the
    interrupt goes on, so that it also ends a grid search: in a notebook the classifier can be used.

    A pickle holds the weights as the bytes of a safetensors file, and no object of torch. A node
    label that no graph of ``fit`` had counts as no label, with a warning.
    """

    _task: Task = "graph"

    def fit(self, X: Any, y: Any) -> KerGNNClassifier:
        """Train on graphs ``X`` with the classes ``y``."""
        codes, classes = checked_classes(y, type(self).__name__)
        records = self._read(X, as_before=self.warm_start)
        check_consistent_length(records, codes)
        self._fit(records, codes, classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the probability of every class in ``classes_``: (graphs, classes)."""
        return self._probabilities(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every graph."""
        best = self._probabilities(X).argmax(1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of every graph, which the model's head classifies by."""
        return self._embeddings(X)

    @property
    def _n_features_out(self) -> int:
        linear = self.model_.head.get_submodule("1")
        return linear.get_parameter("weight").size(1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # a list of graphs is no table
        tags.transformer_tags.preserves_dtype = []
        return tags


def checked_classes(y: Any, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the classes as positions, and what they are."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    _check_types(np.asarray(y, dtype=object).ravel().tolist())
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(f"y has only one class, {classes[0]!s}: at least 2 classes are needed")
    return codes, classes


def _check_types(y: list[Any]) -> None:
    """Refuse what cannot be sorted, or would become strings."""
    if None in y:
        raise ValueError(f"y[{y.index(None)}] is None: every graph needs a class")
    strings = [isinstance(value, str) for value in y]
    if any(strings) and not all(strings):
        some, other = y[strings.index(True)], y[strings.index(False)]
        raise ValueError(
            f"y has {some!r} and {other!r}: classes must be all strings or all numbers"
        )
