"""Where trials run: one after the other, in worker processes, or on a Ray cluster.

All executors run the same function with the same number of threads and give the same numbers. A
trial that raises, or whose process dies, harms no other trial.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

from kergnn.config import ConfigError
from kergnn.evaluation.trial import Record, Trial, run_trial

EXECUTORS = ("serial", "processes", "ray")


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: a record, or the traceback of an error."""

    trial: Trial
    record: Record | None
    error: str = ""


class Executor(ABC):
    """Runs trials, ``workers`` at a time; a context manager that leaves no process behind.

    Args:
        workers: number of trials that run at the same time.
        mirror: folder with copies of the public sets.
        threads: number of threads of every trial.
    """

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


def make_executor(
    name: str,
    workers: int = 1,
    mirror: Path | None = None,
    threads: int = 1,
    ray_address: str | None = None,
) -> Executor:
    """Return an executor by its name."""
    if name == "serial":
        if workers != 1:
            raise ConfigError(f"workers is {workers}: the serial executor has one")
        return SerialExecutor(1, mirror, threads)
    if name == "processes":
        return ProcessExecutor(workers, mirror, threads)
    if name == "ray":
        return RayExecutor(workers, mirror, threads, ray_address)
    raise ConfigError(f"executor is {name!r}: it must be one of {', '.join(EXECUTORS)}")


def _attempt(trial: Trial, mirror: Path | None, threads: int) -> tuple[Record | None, str]:
    """Run a trial; returns its record, or no record and the traceback."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run_trial(trial, mirror, threads), ""
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
        return Outcome(trial, *_attempt(trial, self.mirror, self.threads))


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    trial: Trial | None = None


class ProcessExecutor(Executor):
    """Worker processes on this machine, which end with it."""

    def start(self) -> None:
        """Begin without workers; they are started when they are needed."""
        self._context = multiprocessing.get_context("spawn")
        self._pool: list[_Worker] = []

    def submit(self, trial: Trial) -> None:
        """Give the trial to a worker that is free, or to a new one."""
        worker = next((w for w in self._pool if w.trial is None), None) or self._new_worker()
        worker.trial = trial
        with suppress(OSError):  # if it died while it was idle, wait() finds out
            worker.connection.send(trial)

    def wait(self) -> Outcome:
        """Wait for the first worker that answers or dies."""
        busy = [worker for worker in self._pool if worker.trial is not None]
        ready = wait([worker.connection for worker in busy])
        worker = next(worker for worker in busy if worker.connection in ready)
        trial, worker.trial = worker.trial, None
        assert trial is not None
        try:
            return Outcome(trial, *worker.connection.recv())
        except (EOFError, OSError):
            worker.process.join()
            self._pool.remove(worker)
            code = worker.process.exitcode or 0
            cause = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited ({code})"
            return Outcome(trial, None, f"the worker process {cause}")

    def stop(self) -> None:
        """Kill the workers: what they have not returned is not stored."""
        for worker in self._pool:
            worker.process.kill()
        for worker in self._pool:
            worker.process.join()
            worker.connection.close()
        self._pool = []

    def _new_worker(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(theirs, self.mirror, self.threads), daemon=True
        )
        with _environment(OMP_NUM_THREADS=str(self.threads), PYTHONWARNINGS="ignore"):
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._pool.append(worker)
        return worker


def _work(connection: Connection, mirror: Path | None, threads: int) -> None:
    """Run the trials that come, until the other side is gone."""
    # Ctrl-C is for the parent, which then stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            trial = connection.recv()
        except EOFError:
            return
        connection.send(_attempt(trial, mirror, threads))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _check_reachable(address: str) -> None:
    """Refuse an address where nobody listens: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", which Ray looks up by itself
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ConfigError(f"no Ray cluster at {address}: {error.strerror or error}") from None


class RayExecutor(Executor):
    """Tasks of a Ray cluster: the one at ``address``, or one that is started on this machine.

    The machines of a cluster need this package and, at the same path, the mirror; the store is
    written by the process that asks.
    """

    def __init__(
        self,
        workers: int = 1,
        mirror: Path | None = None,
        threads: int = 1,
        address: str | None = None,
    ) -> None:
        super().__init__(workers, mirror, threads)
        self.address = address

    def start(self) -> None:
        """Connect to the cluster, or start one."""
        try:
            import ray
        except ImportError:
            raise ConfigError(
                "executor is 'ray': install it with pip install 'kergnn[ray]'"
            ) from None
        self._ray: Any = ray
        if self.address:
            _check_reachable(self.address)
        local = {} if self.address else {"num_cpus": self.workers * self.threads}
        try:
            ray.init(
                address=self.address or "local",
                log_to_driver=False,
                include_dashboard=None if self.address else False,
                logging_level="ERROR",
                **local,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(
                f"no Ray cluster at {self.address or 'this machine'}: {reason}"
            ) from None
        self._task = ray.remote(_attempt).options(num_cpus=self.threads, max_retries=0)
        self._trials: dict[Any, Trial] = {}

    def submit(self, trial: Trial) -> None:
        """Give the trial to the cluster."""
        self._trials[self._task.remote(trial, self.mirror, self.threads)] = trial

    def wait(self) -> Outcome:
        """Wait for the first task that ends."""
        (done,), _ = self._ray.wait(list(self._trials), num_returns=1)
        trial = self._trials.pop(done)
        try:
            return Outcome(trial, *self._ray.get(done))
        except self._ray.exceptions.RayError as error:
            return Outcome(trial, None, f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if "_ray" in vars(self):
            for task in getattr(self, "_trials", {}):
                self._ray.cancel(task, force=True)
            self._ray.shutdown()
