"""What a person sees while a run goes on: a live line on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kergnn.checkpoints import TrainingState
from kergnn.config import RunConfig
from kergnn.runs import Reporter

_LINE_EVERY = 10


@contextmanager
def reporting(quiet: bool) -> Iterator[Reporter]:
    """Yield a reporter for standard output."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if quiet:
        yield Reporter()
    elif not console.is_terminal or console.is_dumb_terminal:
        yield Reporter(message=console.print, epoch=_plain(console))
    else:
        bar = [BarColumn(bar_width=console.width - 80)] if console.width >= 90 else []
        with Progress(
            TextColumn("{task.description}"),
            MofNCompleteColumn(),
            *bar,
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        ) as progress:
            yield Reporter(console.print, _building(progress), _live(progress))


def _plain(console: Console) -> Any:
    def epoch(config: RunConfig, state: TrainingState) -> None:
        if state.epoch % _LINE_EVERY == 0 or state.epoch in (1, config.epochs):
            left = ""
            if len(state.history) > 1:  # the first epoch may have waited for the compiler
                seconds = (config.epochs - state.epoch) * state.history[-1]["seconds"]
                left = f"  at most {seconds:.0f} s left"
            console.print(f"epoch {state.epoch}/{config.epochs}  {_figures(config, state)}{left}")

    return epoch


def _building(progress: Progress) -> Any:
    task = progress.add_task("ego-graphs", total=None, visible=False, figures="nodes")

    def building(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total, visible=done < total)

    return building


def _live(progress: Progress) -> Any:
    task = progress.add_task("epoch", total=None, visible=False, figures="")

    def epoch(config: RunConfig, state: TrainingState) -> None:
        progress.update(
            task,
            completed=state.epoch,
            total=config.epochs,
            visible=True,
            figures=_figures(config, state),
        )

    return epoch


def _figures(config: RunConfig, state: TrainingState) -> str:
    last, best = state.history[-1], state.history[state.best_epoch - 1]
    key = f"validation_{config.metric}"
    figures = f"loss {last['train_loss']:.3f}  validation {last[key]:.3f}"
    if config.keep_epoch == "last":
        return figures
    return f"{figures}  best {best[key]:.3f} (epoch {state.best_epoch})"
