"""Worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from kergnn.evaluation.executors.base import Executor, Limits, Outcome, attempt
from kergnn.evaluation.trial import Trial
from kergnn.memory import resident_memory

_POLL_SECONDS = 0.2


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    trial: Trial | None = None
    started: float | None = None  # None until it has loaded all and begins
    told: str = ""  # how far it is


class ProcessExecutor(Executor):
    """Worker processes on this machine, which end with it.

    Trials that wait for a Gram matrix which has exceeded a limit before are not begun.

    Args:
        workers: number of trials that run at the same time.
        mirror: folder with copies of the public sets.
        threads: number of threads of every trial.
        limits: what a trial may use; one that exceeds it is ended.
    """

    def __init__(
        self,
        workers: int = 1,
        mirror: Path | None = None,
        threads: int = 1,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(workers, mirror, threads)
        self.limits = limits or Limits()

    def start(self) -> None:
        """Begin without workers; they are started when they are needed."""
        self._context = multiprocessing.get_context("spawn")
        self._pool: list[_Worker] = []
        self._hopeless: dict[str, Outcome] = {}  # by what decides a Gram matrix
        self._ended: deque[Outcome] = deque()

    def submit(self, trial: Trial) -> None:
        """Give the trial to a worker that is free, or to a new one."""
        known = self._hopeless.get(trial.gram_key or "")
        if known is not None:
            self._ended.append(replace(known, trial=trial))
            return
        for dead in [w for w in self._pool if w.trial is None and not w.process.is_alive()]:
            self._remove(dead)
        worker = next((w for w in self._pool if w.trial is None), None) or self._new_worker()
        worker.trial, worker.started, worker.told = trial, None, ""
        with suppress(OSError):  # if it died while it was idle, wait() finds out
            worker.connection.send(trial)

    def wait(self) -> Outcome:
        """Wait for the first worker that answers, dies or exceeds a limit."""
        if self._ended:
            return self._ended.popleft()
        busy = [worker for worker in self._pool if worker.trial is not None]
        while True:
            poll = _POLL_SECONDS if self.limits else None
            ready = wait([worker.connection for worker in busy], poll)
            for worker in busy:
                if worker.connection in ready:
                    outcome = self._answer(worker)
                    if outcome is not None:
                        return outcome
                reason = _exceeded(worker, self.limits)
                if reason:
                    return self._end(worker, reason)

    def _answer(self, worker: _Worker) -> Outcome | None:
        """Return what a worker has found; ``None`` if it only says how far it is."""
        trial = worker.trial
        assert trial is not None
        try:
            message = worker.connection.recv()
            if message is None:
                worker.started = time.monotonic()
                return None
            if isinstance(message, str):
                self.progress(message)
                worker.told = message
                return None
            worker.trial = None
            return Outcome(trial, *message)
        except (EOFError, OSError):
            self._remove(worker)
            code = worker.process.exitcode or 0
            cause = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited ({code})"
            return Outcome(trial, None, f"the worker process {cause}")

    def _end(self, worker: _Worker, reason: str) -> Outcome:
        assert worker.trial is not None
        assert worker.started is not None
        reached = {
            "seconds": round(time.monotonic() - worker.started, 1),
            "memory": resident_memory(worker.process.pid),
        }
        worker.process.kill()
        self._remove(worker)
        outcome = Outcome(worker.trial, None, reason, reached)
        if worker.trial.gram_key and worker.told and not worker.told.endswith(" 100 %"):
            self._hopeless[worker.trial.gram_key] = outcome
        return outcome

    def _remove(self, worker: _Worker) -> None:
        worker.process.join()
        worker.connection.close()
        self._pool.remove(worker)

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
            target=_work, args=(theirs, self.mirror, self.threads, self.kernels), daemon=True
        )
        with _environment(OMP_NUM_THREADS=str(self.threads), PYTHONWARNINGS="ignore"):
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._pool.append(worker)
        return worker


def _work(connection: Connection, mirror: Path | None, threads: int, kernels: Path | None) -> None:
    """Run the trials that come, until the other side is gone."""
    # Ctrl-C is for the parent, which then stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            trial = connection.recv()
        except EOFError:
            return
        connection.send(None)  # all is loaded: the clock may start
        connection.send(attempt(trial, mirror, threads, kernels, connection.send))


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


def _exceeded(worker: _Worker, limits: Limits) -> str:
    """Say which limit a worker has exceeded, if any."""
    if worker.started is None:
        return ""
    if limits.seconds is not None and time.monotonic() - worker.started > limits.seconds:
        return f"out of resources: more than {limits.seconds:g} s"
    memory = resident_memory(worker.process.pid)
    if limits.memory is not None and memory is not None and memory > limits.memory:
        return f"out of resources: more than {limits.memory / 2**30:g} GB"
    return ""
