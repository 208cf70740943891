"""The state of a training, in memory and on disk, so that a killed run can go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kergnn.data import DataError
from kergnn.data.store import load_tensors, save_tensors, write_atomic
from kergnn.outputs import metrics_table


@dataclass(frozen=True)
class TrainingState:
    """What a run knows after some epochs; enough to go on as if it had not stopped.

    Args:
        epoch: number of epochs done.
        history: for each epoch its loss, validation figures and seconds.
        best_epoch: the epoch that validation selects, counted from 1; 0 for none yet. With
            ``keep_epoch = "last"`` the last one.
        best_weights: the model's weights after that epoch.
        weights: the model's weights now.
        optimizer: the optimizer's tensors, by name.
    """

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    optimizer: dict[str, Tensor] = field(default_factory=dict)

    @property
    def best_figures(self) -> dict[str, float]:
        """The validation figures of the best epoch."""
        best, prefix = self.history[self.best_epoch - 1], "validation_"
        return {k.removeprefix(prefix): v for k, v in best.items() if k.startswith(prefix)}


def save_checkpoint(out: Path, state: TrainingState) -> None:
    """Write the state of a training, and its figures so far, into a run folder."""
    tensors = {f"weights.{k}": t for k, t in state.weights.items()}
    if state.best_epoch != state.epoch:  # otherwise they are the same tensors
        tensors |= {f"best.{k}": t for k, t in state.best_weights.items()}
    tensors |= {f"optimizer.{k}": t for k, t in state.optimizer.items()}
    record = {"epoch": state.epoch, "best_epoch": state.best_epoch, "history": state.history}
    save_tensors(out / "checkpoint.safetensors", tensors, record)
    write_atomic(out / "metrics.csv", metrics_table(state.history).encode())


def load_checkpoint(out: Path) -> TrainingState:
    """Read the state that a run folder holds."""
    path = out / "checkpoint.safetensors"
    tensors, record = load_tensors(path)

    def part(prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}

    try:
        return TrainingState(
            epoch=record["epoch"],
            history=record["history"],
            best_epoch=record["best_epoch"],
            best_weights=part("best.") or part("weights."),
            weights=part("weights."),
            optimizer=part("optimizer."),
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not a checkpoint ({error!r})") from None


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model as they are now."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return Adam's moments as plain named tensors."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value).detach().cpu().clone()
        for index, values in state.items()
        for name, value in values.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimizer the moments that :func:`optimizer_tensors` returned."""
    state: dict[int, dict[str, Any]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
