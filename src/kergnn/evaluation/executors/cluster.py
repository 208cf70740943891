"""A Ray cluster."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from kergnn.config import ConfigError
from kergnn.evaluation.executors.base import Executor, Outcome, attempt
from kergnn.evaluation.trial import Trial


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
            raise ConfigError("executor is 'ray': install it with pip install ray") from None
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
        self._task = ray.remote(attempt).options(num_cpus=self.threads, max_retries=0)
        self._trials: dict[Any, Trial] = {}

    def submit(self, trial: Trial) -> None:
        """Give the trial to the cluster."""
        self._trials[self._task.remote(trial, self.mirror, self.threads, self.kernels)] = trial

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
