"""One training run: the loop, selection of the epoch by validation, checkpoint and resume.

All randomness of an epoch is derived from the seed and the epoch's number, so that a run that was
killed and resumed is the same, to the last digit, as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kergnn._checks import check_choice, check_integer
from kergnn._denormals import flushed_denormals
from kergnn.checkpoints import (
    TrainingState,
    copied_weights,
    load_optimizer,
    optimizer_tensors,
)
from kergnn.config import RunConfig
from kergnn.data import GraphSet
from kergnn.nn import batch_norms, calibrated_norms
from kergnn.prediction import (
    METRICS,
    Batches,
    log_loss,
    metrics,
    outputs_of,
    predict_probabilities,
)

SCHEDULES = ("halve", "cosine", "constant")
# Batch statistics are estimated on so many graphs. Fewer will not do: the head sees one row a
# graph, and with 150 of REDDIT-BINARY the draw alone moved the validation accuracy by points.
_CALIBRATION_GRAPHS = 1024


def resolve_device(device: str) -> torch.device:
    """Return the device that ``auto`` stands for, or the named one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0][:80]
        raise ValueError(
            f"device is {device!r}: it must be auto, cpu, or a device that is here, such as cuda "
            f"({reason})"
        ) from None
    return chosen


def check_settings(config: RunConfig, num_classes: int) -> None:
    """Refuse settings of the training that cannot be."""
    check_choice("metric", config.metric, METRICS)
    check_choice("schedule", config.schedule, SCHEDULES)
    check_choice("keep_epoch", config.keep_epoch, [None, "last"])
    for name in ("epochs", "patience", "batch_size"):
        check_integer(name, getattr(config, name), minimum=1)
    if not config.learning_rate > 0:
        raise ValueError(f"learning_rate is {config.learning_rate}: it must be above 0")
    if config.weight_decay < 0:
        raise ValueError(f"weight_decay is {config.weight_decay}: it must not be negative")
    if config.clip is not None and config.clip <= 0:
        raise ValueError(f"clip is {config.clip}: it must be above 0, or none")
    if config.metric == "roc_auc" and num_classes != 2:
        raise ValueError(f"metric is 'roc_auc': it needs two classes, and there are {num_classes}")


class Trainer:
    """Trains one model on the training part of a split and keeps the best epoch, or the last.

    The test part is not given to it: see :func:`predict_probabilities` for the one look at it.

    Args:
        config: the configuration.
        model: the model.
        graphs: the whole set.
        batches: the same graphs with their features, as the model takes them.
        train: positions of the training graphs or nodes.
        validation: positions of the validation graphs or nodes; with ``keep_epoch = "last"`` there
            may be none.
    """

    def __init__(
        self,
        config: RunConfig,
        model: nn.Module,
        graphs: GraphSet,
        batches: Batches,
        train: Tensor,
        validation: Tensor,
    ) -> None:
        check_settings(config, graphs.num_classes)
        if graphs.num_nodes == 0:
            raise ValueError(f"{graphs.name}: no graph has a node")
        if len(train) == 0:
            raise ValueError("the training part must not be empty")
        if len(validation) == 0 and config.keep_epoch != "last":
            raise ValueError(
                "the validation part must not be empty, unless keep_epoch is 'last': it chooses "
                "the epoch"
            )
        present = graphs.y[validation].bincount(minlength=2).count_nonzero()
        if config.metric == "roc_auc" and len(validation) and present != 2:
            raise ValueError("metric is 'roc_auc': it needs both classes in the validation part")
        self.config, self.graphs, self.batches = config, graphs, batches
        self.device = batches.x.device
        self.model = model.to(self.device)
        self.train_part, self.validation_part = train, validation
        self.optimizer = torch.optim.Adam(
            model.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=self.device.type == "cpu",
        )
        weight = _class_weight(config, graphs, train)
        self.class_weight = None if weight is None else weight.to(self.device)
        self.state = TrainingState()

    def restore(self, state: TrainingState) -> None:
        """Go on from a saved state."""
        try:
            self.model.load_state_dict(state.weights)
            load_optimizer(self.optimizer, state.optimizer)
        except (RuntimeError, KeyError, ValueError):
            raise ValueError("the checkpoint does not fit the configuration") from None
        self.state = state

    def run(self, after_epoch: Callable[[TrainingState], None] = lambda state: None) -> None:
        """Train until the last epoch or until validation has not improved for ``patience`` epochs.

        Then the weights are those of the best epoch, or, with ``keep_epoch = "last"``, which stops
        at no other, of the last.

        Args:
            after_epoch: called after every epoch with the state.
        """
        while not self.finished:
            self._epoch()
            after_epoch(self.state)
        self.model.load_state_dict(self.state.best_weights)

    @property
    def finished(self) -> bool:
        """Whether there is no epoch left to train."""
        state, config = self.state, self.config
        waited = state.epoch - state.best_epoch
        return state.epoch >= config.epochs or (state.epoch > 0 and waited >= config.patience)

    def _epoch(self) -> None:
        try:
            row = self._train_and_validate()
        except ValueError:
            if all(p.isfinite().all() for p in self.model.parameters()):
                raise
            self._diverged()
        self._record(row)

    def _diverged(self) -> NoReturn:
        raise FloatingPointError(
            f"training diverged in epoch {self.state.epoch + 1}: try a smaller learning_rate"
        )

    def _train_and_validate(self) -> dict[str, float]:
        start = time.perf_counter()
        epoch = self.state.epoch
        torch.manual_seed(_epoch_seed(self.config.seed, epoch))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, epoch)
        self.model.train()
        total, count = 0.0, 0
        for logits, y in self._training_outputs():
            loss = cross_entropy(logits, y, weight=self.class_weight)
            # What a model wants to have added, such as DiffPool.
            loss = loss + getattr(self.model, "auxiliary_loss", 0.0)
            if not torch.isfinite(loss):
                self._diverged()
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            if self.config.clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
            with flushed_denormals():
                self.optimizer.step()
            total, count = total + loss.item() * len(y), count + len(y)

        # Without a validation part nobody looks at the statistics before the last epoch.
        if len(self.validation_part) or epoch + 1 == self.config.epochs:
            self._calibrate()
        row = {"epoch": epoch + 1, "train_loss": total / count}
        row |= {f"validation_{name}": value for name, value in self._validate().items()}
        row |= {"learning_rate": learning_rate(self.config, epoch)}
        row |= {"seconds": time.perf_counter() - start}
        return row

    def _validate(self) -> dict[str, float]:
        if len(self.validation_part) == 0:
            return {}
        probabilities = predict_probabilities(self.model, self.batches, self.validation_part)
        if not probabilities.isfinite().all():
            self._diverged()
        y = self.graphs.y[self.validation_part]
        return {**metrics(probabilities, y), "loss": log_loss(probabilities, y)}

    def _calibrate(self) -> None:
        """Estimate the batch statistics on random training graphs, batch by batch as in training.

        Files are often sorted by class, so the first graphs would not do.
        """
        if not batch_norms(self.model):
            return
        order = torch.randperm(len(self.train_part))[:_CALIBRATION_GRAPHS]
        with calibrated_norms(self.model):
            if self.graphs.task == "node":
                outputs_of(self.model, self.batches, self.train_part)
            else:
                for which in torch.split(self.train_part[order], self.config.batch_size):
                    outputs_of(self.model, self.batches, which, whole=True)

    def _training_outputs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and classes, batch after batch, in an order drawn for this epoch."""
        if self.graphs.task == "node":
            whole = self.batches(torch.arange(self.graphs.num_graphs, device=self.device))
            part = self.train_part.to(self.device)
            yield self.model(*whole.inputs[:2]).index_select(0, part), self.batches.y[part]
            return
        order = self.train_part[torch.randperm(len(self.train_part))].to(self.device)
        for which in torch.split(order, self.config.batch_size):
            batch = self.batches(which)
            yield self.model(*batch.inputs), batch.y

    def _record(self, row: dict[str, float]) -> None:
        old, weights = self.state, copied_weights(self.model)
        # Small validation parts choose among epochs mostly by chance; the last one is annealed.
        better = self.config.keep_epoch == "last" or self._is_best(row)
        # One assignment: an interrupt finds the state of the epoch before or of this one.
        self.state = TrainingState(
            epoch=old.epoch + 1,
            history=[*old.history, row],
            best_epoch=old.epoch + 1 if better else old.best_epoch,
            best_weights=weights if better else old.best_weights,
            weights=weights,
            optimizer=optimizer_tensors(self.optimizer),
        )

    def _is_best(self, row: dict[str, float]) -> bool:
        if not self.state.best_epoch:
            return True
        best = self.state.history[self.state.best_epoch - 1]
        # Validation parts are small and accuracies tie often: the loss decides then.
        new, old = (
            (figures[f"validation_{self.config.metric}"], -figures["validation_loss"])
            for figures in (row, best)
        )
        return new > old


def learning_rate(config: RunConfig, epoch: int) -> float:
    """Return the learning rate of an epoch, counted from 0."""
    if config.schedule == "halve":
        return config.learning_rate * 0.5 ** (epoch // 50)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / config.epochs))
    return config.learning_rate


def _epoch_seed(seed: int, epoch: int) -> int:
    return int(torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(seed))) + epoch


def _class_weight(config: RunConfig, graphs: GraphSet, train: Tensor) -> Tensor | None:
    if not config.class_weights:
        return None
    counts = torch.bincount(graphs.y[train], minlength=graphs.num_classes).clamp(min=1)
    weight = counts.sum() / (counts * graphs.num_classes)
    return weight.float()
