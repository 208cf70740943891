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


def run(function: Callable[[], None], work: int) -> None:
    """Call ``function`` in several threads at once, at most as many as torch uses.

    Args:
        function: takes units of work until there are none left. So it does not matter when, or
            whether, another thread gets its turn: torch's own threads may still hold a core.
        work: number of multiplications, roughly.
    """
    num_threads = max(1, min(torch.get_num_threads(), work // _WORK_PER_THREAD))
    pool = _pool(num_threads) if num_threads > 1 else None
    futures = [pool.submit(function) for _ in range(num_threads - 1)] if pool else []
    try:
        function()
    finally:
        for future in futures:
            if not future.cancel():
                future.result()


def _pool(num_threads: int) -> ThreadPoolExecutor:
    """Return this process's pool; the calling thread takes part too."""
    key = (os.getpid(), num_threads)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(num_threads - 1, thread_name_prefix="kergnn")
    return _pools[key]
