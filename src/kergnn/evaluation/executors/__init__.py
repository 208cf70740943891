"""Where trials run: one after the other, in worker processes, or on a Ray cluster.

All executors run the same function with the same number of threads and give the same numbers. A
trial that raises, or whose process dies, harms no other trial.
"""

from __future__ import annotations

from pathlib import Path

from kergnn.config import ConfigError
from kergnn.evaluation.executors.base import Executor, Limits, Outcome, SerialExecutor
from kergnn.evaluation.executors.cluster import RayExecutor
from kergnn.evaluation.executors.processes import ProcessExecutor

__all__ = ["EXECUTORS", "Executor", "Limits", "Outcome", "SerialExecutor", "make_executor"]

EXECUTORS = ("serial", "processes", "ray")


def make_executor(
    name: str,
    workers: int = 1,
    mirror: Path | None = None,
    threads: int = 1,
    ray_address: str | None = None,
    limits: Limits | None = None,
) -> Executor:
    """Return an executor by its name.

    Args:
        name: ``"serial"``, ``"processes"`` or ``"ray"``.
        workers: number of trials that run at the same time.
        mirror: folder with copies of the public sets.
        threads: number of threads of every trial.
        ray_address: an existing Ray cluster; by default one is started here.
        limits: what a trial may use; only worker processes can be held to it.
    """
    if limits and name != "processes":
        raise ConfigError(f"executor is {name!r}: limits of a trial need 'processes'")
    if name == "serial":
        if workers > 1:
            raise ConfigError(f"workers is {workers}: with executor 'serial' it must be 1")
        return SerialExecutor(workers, mirror, threads)
    if name == "processes":
        return ProcessExecutor(workers, mirror, threads, limits)
    if name == "ray":
        return RayExecutor(workers, mirror, threads, ray_address)
    raise ConfigError(f"executor is {name!r}: it must be one of {', '.join(EXECUTORS)}")
