"""Where trials run."""

from __future__ import annotations

import traceback
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from kergnn.config import ConfigError
from kergnn.evaluation.trial import Record, Trial, run_trial


@dataclass(frozen=True)
class Limits:
    """What one trial may use; ``None`` for no limit.

    Args:
        seconds: time.
        memory: resident memory of the process, in bytes.
    """

    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("trial_timeout", self.seconds), ("trial_memory", self.memory)):
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value}: it must be above 0")

    def __bool__(self) -> bool:
        return self.seconds is not None or self.memory is not None


@dataclass(frozen=True)
class Outcome:
    """What became of a trial.

    Args:
        trial: the trial.
        record: its record, ``None`` if it could not be finished.
        error: the traceback then.
        reached: what it had used when it ran out of resources: seconds and bytes.
    """

    trial: Trial
    record: Record | None
    error: str = ""
    reached: Record | None = None


class Executor(ABC):
    """Runs trials, ``workers`` at a time; a context manager that leaves no process behind.

    Args:
        workers: number of trials that run at the same time.
        mirror: folder with copies of the public sets.
        threads: number of threads of every trial.
    """

    limits = Limits()
    kernels: Path | None = None  # the folder of Gram matrices
    progress: Callable[[str], None] = staticmethod(lambda text: None)  # how far a trial is

    def __init__(self, workers: int = 1, mirror: Path | None = None, threads: int = 1) -> None:
        for name, value in (("workers", workers), ("threads", threads)):
            if value < 1:
                raise ConfigError(f"{name} is {value}: it must be at least 1")
        self.workers, self.mirror, self.threads = workers, mirror, threads

    @abstractmethod
    def submit(self, trial: Trial) -> None:
        """Start a trial; at most ``workers`` may be unfinished."""

    @abstractmethod
    def wait(self) -> Outcome:
        """Wait until a trial ends."""

    def start(self) -> None:  # noqa: B027
        """Start whatever is needed."""

    def stop(self) -> None:  # noqa: B027
        """End all that runs, at once."""

    def __enter__(self) -> Executor:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def attempt(
    trial: Trial,
    mirror: Path | None,
    threads: int,
    kernels: Path | None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Record | None, str]:
    """Run a trial; returns its record, or no record and the traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run_trial(trial, mirror, threads, kernels, progress), ""
    except Exception:
        return None, traceback.format_exc()


class SerialExecutor(Executor):
    """One trial after the other, in this process."""

    def start(self) -> None:
        """Begin with nothing to do."""
        self._queue: deque[Trial] = deque()

    def submit(self, trial: Trial) -> None:
        """Keep the trial; it runs when it is waited for."""
        self._queue.append(trial)

    def wait(self) -> Outcome:
        """Run a trial."""
        trial = self._queue.popleft()
        found = attempt(trial, self.mirror, self.threads, self.kernels, self.progress)
        return Outcome(trial, *found)
