"""The state of a training on disk, so that a killed run can go on."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from kergnn.data import DataError
from kergnn.data.store import load_tensors, save_tensors, write_atomic
from kergnn.outputs import metrics_table
from kergnn.training import TrainingState


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
