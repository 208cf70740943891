"""What the two classifiers share: parameters, training, prediction, and how they are pickled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from importlib import import_module
from numbers import Real
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch_geometric.data import Data

from kergnn._checks import check_choice
from kergnn._threads import num_threads, use_threads
from kergnn.batches import GraphBatches
from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, Task
from kergnn.data.adapters import read_graphs
from kergnn.data.records import GraphRecord, join
from kergnn.egographs import EgoGraphs
from kergnn.models import build_model
from kergnn.nn import KerGNN, KerGNNConv
from kergnn.prediction import embeddings, predict_probabilities
from kergnn.preparation import Development, prepare_trainer, resolve_config
from kergnn.reporting import reporting
from kergnn.training import resolve_device

Method = TypeVar("Method", bound=Callable[..., Any])


class Filters(NamedTuple):
    """The filters of one layer: small weighted graphs.

    Args:
        adjacency: (D, m, m) weights of the edges of D filters of m nodes.
        attributes: (D, m, d) attributes of their nodes.
    """

    adjacency: NDArray[np.float32]
    attributes: NDArray[np.float32]


def _in_threads(method: Method) -> Method:
    """Let a method use as many threads as ``n_jobs`` says."""

    @wraps(method)
    def limited(self: KerGNNEstimator, *args: Any, **kwargs: Any) -> Any:
        with use_threads(num_threads(self.n_jobs)):
            return method(self, *args, **kwargs)

    return cast(Method, limited)


class KerGNNEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of the classifiers; see :class:`KerGNNClassifier` for the parameters."""

    _task: Task

    def __init__(
        self,
        *,
        hidden_channels: int = 32,
        num_layers: int = 2,
        filter_size: int = 6,
        num_steps: int = 2,
        kernel: str = "rw",
        num_hops: int = 1,
        max_nodes: int | None = 10,
        input_channels: int | None = None,
        normalize: str | None = "log",
        update: str | None = "mlp",
        step_weights: str | None = None,
        norm: str | None = "batch",
        dropout: float | None = None,
        input_dropout: float | None = None,
        readout: str = "sum",
        restart: float | None = None,
        features: str | None = None,
        node_labels: str | list[str] | None = None,
        node_attributes: str | list[str] | None = None,
        epochs: int = 200,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        schedule: str = "halve",
        weight_decay: float = 0.0,
        class_weights: bool = False,
        metric: str = "accuracy",
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        patience: int = 60,
        keep_epoch: str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
    ) -> None:
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.filter_size = filter_size
        self.num_steps = num_steps
        self.kernel = kernel
        self.num_hops = num_hops
        self.max_nodes = max_nodes
        self.input_channels = input_channels
        self.normalize = normalize
        self.update = update
        self.step_weights = step_weights
        self.norm = norm
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.readout = readout
        self.restart = restart
        self.features = features
        self.node_labels = node_labels
        self.node_attributes = node_attributes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.class_weights = class_weights
        self.metric = metric
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.keep_epoch = keep_epoch
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    @property
    def filters_(self) -> list[Filters]:
        """The filters of every layer, the first layer first."""
        check_is_fitted(self, "model_")
        layers = [conv.filters() for conv in self.model_.convs if isinstance(conv, KerGNNConv)]
        return [Filters(*(tensor.cpu().numpy() for tensor in layer)) for layer in layers]

    def predict_log_proba(self, X: Any) -> NDArray[np.float32]:
        """Return the logarithm of what ``predict_proba`` returns."""
        with np.errstate(divide="ignore"):
            logarithm: NDArray[np.float32] = np.log(self._probabilities(X))
        return logarithm

    @_in_threads
    def explain(self, graph: Any, target: Any = None, **options: Any) -> Any:
        """Explain the prediction for one graph, see :func:`kergnn.explain.explain`.

        Args:
            graph: a graph of any accepted kind.
            target: the class to explain, by default the predicted one.
            **options: passed on, such as the node ``index`` of a classifier of nodes.
        """
        check_is_fitted(self, "model_")
        graphs = self._new_graphs(graph)
        if graphs.num_graphs != 1:
            raise ValueError(f"graph holds {graphs.num_graphs} graphs: it must be one")
        if target is not None:
            check_choice("target", target, self.classes_.tolist())
            target = self.classes_.tolist().index(target)
        x = self.features_(graphs, unknown="zeros")
        data = Data(x=x, edge_index=graphs.simple_edges, num_nodes=graphs.num_nodes)
        return import_module("kergnn.explain").explain(self.model_.cpu(), data, target, **options)

    def plot_filters(self, **options: Any) -> Any:
        """Return a picture of the filters, see :func:`kergnn.explain.draw_filters`."""
        check_is_fitted(self, "model_")
        names = self.features_.names if self.features_.is_one_hot else None
        return import_module("kergnn.explain").draw_filters(
            self.model_, **{"names": names, **options}
        )

    @_in_threads
    def _fit(self, records: list[GraphRecord], codes: NDArray[Any], classes: NDArray[Any]) -> None:
        """Train, and keep the best model, also if the training is interrupted.

        Args:
            records: the graphs.
            codes: the class of every graph or node as a position in classes, -1 for not known.
            classes: the classes.
        """
        graphs = replace(
            _joined(records, self._task),
            y=torch.from_numpy(codes.astype(np.int64)),
            class_names=tuple(str(c) for c in classes),
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        config = resolve_config(self._config(seed), graphs)
        train, validation = self._split(codes, seed)
        development = Development(graphs, _ego_graphs(config, graphs), train, validation)
        with torch.random.fork_rng(devices=[]), reporting(quiet=not self.verbose) as reporter:
            trainer, features = prepare_trainer(config, development)
            if self.warm_start and hasattr(self, "model_"):
                self._continue(trainer.model, features, classes)
            interrupt = None
            try:
                trainer.run(lambda state: reporter.epoch(config, state))
            except KeyboardInterrupt as error:
                interrupt = error
        state = trainer.state
        if state.epoch:
            trainer.model.load_state_dict(state.best_weights)
            self.model_: KerGNN = cast(KerGNN, trainer.model.eval())
            self.config_ = config
            self.features_, self.classes_ = features, classes
            self.n_features_in_, self.n_iter_ = len(features.names), state.epoch
            self.best_epoch_, self.history_ = state.best_epoch, state.history
        if interrupt is not None:
            raise interrupt

    def _continue(self, model: nn.Module, features: Features, classes: NDArray[Any]) -> None:
        """Begin with the weights of the last fit, if all that they mean is the same."""
        now = {"classes": classes.tolist(), "node features": features.names}
        before = {"classes": self.classes_.tolist(), "node features": self.features_.names}
        for what, values in now.items():
            if values != before[what]:
                raise ValueError(
                    f"warm_start is True: the {what} must be those of the last fit, "
                    f"{before[what]}, but they are {values}"
                )
        if features.subtrees != self.features_.subtrees:  # the names of their columns are the same
            raise ValueError("warm_start is True: the subtrees must be those of the last fit")
        try:
            model.load_state_dict(self.model_.state_dict())
        except RuntimeError:
            raise ValueError(
                "warm_start is True: the model of the last fit has another shape than the "
                "parameters say"
            ) from None

    def _config(self, seed: int) -> RunConfig:
        """Return the parameters as the configuration of a training."""
        known = {field.name for field in fields(RunConfig)}
        values = {k: v for k, v in self.get_params(deep=False).items() if k in known}
        # Grids are often NumPy arrays.
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
        return RunConfig().replace({**plain, "dataset": "X", "task": self._task, "seed": seed})

    def _split(self, codes: NDArray[Any], seed: int) -> tuple[Tensor, Tensor]:
        """Return the positions to train on and those that select the epoch.

        Of every class about the same share is held out, of a class with one member nothing. Where
        nothing can be held out, all serves both ends.
        """
        check_choice("early_stopping", self.early_stopping, [True, False])
        fraction = self.validation_fraction
        if not isinstance(fraction, Real) or not 0 < fraction <= 0.5:
            raise ValueError(
                f"validation_fraction is {fraction!r}: it must be above 0, at most 0.5"
            )
        known = np.flatnonzero(codes >= 0)
        several = known[np.bincount(codes[known])[codes[known]] > 1]
        order = np.random.default_rng(seed).permutation(several)
        order = order[np.argsort(codes[order], kind="stable")]
        steps = np.ceil(np.arange(len(order) + 1) * fraction)
        held_out = np.sort(order[np.diff(steps) > 0])
        if not self.early_stopping or not len(held_out):
            return torch.from_numpy(known), torch.from_numpy(known)
        train = np.setdiff1d(known, held_out)
        return torch.from_numpy(train), torch.from_numpy(held_out)

    def _read(self, X: Any, as_before: bool) -> list[GraphRecord]:
        """Return the graphs one by one; as before, with the labels that those of fit had."""
        like = self.features_.columns if as_before and hasattr(self, "features_") else None
        return read_graphs(X, self.node_labels, self.node_attributes, self._task, like)

    def _new_graphs(self, X: Any) -> GraphSet:
        return _joined(self._read(X, as_before=True), self._task)

    @_in_threads
    def _probabilities(self, X: Any) -> NDArray[np.float32]:
        """Return the probabilities of the classes for all graphs, or all nodes of them."""
        check_is_fitted(self, "model_")
        batches = _batches(self.config_, self._new_graphs(X), self.features_)
        model = self.model_.to(batches.x.device)
        return predict_probabilities(model, batches, torch.arange(len(batches.y))).numpy()

    @_in_threads
    def _embeddings(self, X: Any) -> NDArray[np.float32]:
        """Return what the head of the model sees of all graphs, or all nodes of them."""
        check_is_fitted(self, "model_")
        batches = _batches(self.config_, self._new_graphs(X), self.features_)
        model = self.model_.to(batches.x.device)
        return embeddings(model, batches, torch.arange(len(batches.y))).numpy()

    def __getstate__(self) -> dict[str, Any]:
        """Return plain values: the weights are the bytes of a safetensors file."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "model_" in state:
            weights = state.pop("model_").state_dict()
            state["_weights"] = save({k: v.cpu().contiguous() for k, v in weights.items()})
            state["features_"] = self.features_.to_dict()
            state["config_"] = self.config_.to_dict()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the model again."""
        state = dict(state)
        weights = state.pop("_weights", None)
        if weights is not None:
            config = RunConfig().replace(state["config_"])
            features = Features.from_dict(state["features_"])
            with torch.random.fork_rng(devices=[]):
                num_classes = len(state["classes_"])
                width, words = len(features.names), features.vocabulary
                model = build_model(config, width, num_classes, self._task, vocabulary=words)
            model.load_state_dict(load(weights))
            state |= {"config_": config, "features_": features, "model_": model.eval()}
        super().__setstate__(state)


def _joined(records: list[GraphRecord], task: Task) -> GraphSet:
    count = sum(r.num_nodes for r in records) if task == "node" else len(records)
    return join("X", records, [None] * count, task)


def _ego_graphs(config: RunConfig, graphs: GraphSet) -> EgoGraphs:
    """Build the ego-graphs; those of graphs in memory are not worth a place on the disk."""
    size, edges = graphs.num_nodes, graphs.edge_index
    return EgoGraphs.from_edge_index(edges, size, config.num_hops, config.max_nodes)


def _batches(config: RunConfig, graphs: GraphSet, features: Features) -> GraphBatches:
    x, device = features(graphs, unknown="zeros"), resolve_device(config.device)
    return GraphBatches(graphs, x, _ego_graphs(config, graphs), device)
