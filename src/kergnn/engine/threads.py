"""A small pool of plain threads for compiled code that releases the GIL.

Unlike OpenMP this survives a fork, as in the workers of a DataLoader: a child process has none of
its parent's threads and makes its own pool when it first needs one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

# Below this many multiplications a second thread costs more than it saves.
_WORK_PER_THREAD = 200_000

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def run(function: Callable[[int, int], None], work: int) -> None:
    """Call ``function(worker, num_workers)`` for every worker, at most one a thread of torch.

    Args:
        function: does the share ``worker``, ``worker + num_workers``, ... of the work.
        work: number of multiplications, roughly.
    """
    num_workers = max(1, min(torch.get_num_threads(), work // _WORK_PER_THREAD))
    if num_workers == 1:
        function(0, 1)
        return
    futures = [_pool(num_workers).submit(function, w, num_workers) for w in range(1, num_workers)]
    try:
        function(0, num_workers)
    finally:
        for future in futures:
            future.result()


def _pool(num_workers: int) -> ThreadPoolExecutor:
    """Return this process's pool; the calling thread is a worker too."""
    key = (os.getpid(), num_workers)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(num_workers - 1, thread_name_prefix="kergnn")
    return _pools[key]
