"""Threads for compiled code that releases the GIL: torch's own OpenMP threads, where they are.

After a parallel operation OpenMP's threads spin for a while, so a second pool beside torch's would
fight with it for the cores. A forked child, as a worker of a DataLoader, has none of its parent's
threads, and OpenMP would wait for them forever: there a pool of plain threads does the work.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import torch

# Below this many multiplications a second thread costs more than it saves.
_WORK_PER_THREAD = 50_000

_forked = False
_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def run(function: Callable[[], None], work: int) -> None:
    """Call ``function`` in several threads at once, at most as many as torch uses.

    Args:
        function: takes units of work until there are none left. So it does not matter when, or
            whether, another thread gets its turn.
        work: number of multiplications, roughly.
    """
    num_threads = max(1, min(torch.get_num_threads(), work // _WORK_PER_THREAD))
    if num_threads == 1:
        function()
    elif (openmp := _openmp()) is None or _forked:
        _run_in_pool(function, num_threads)
    else:
        _run_in_team(openmp, function, num_threads)


def _run_in_team(openmp: ctypes.CDLL, function: Callable[[], None], num_threads: int) -> None:
    """Let OpenMP's threads call ``function``; raise the first error, which C would swallow."""
    errors: list[BaseException] = []

    def body(_: int) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    with _caught(body, errors):
        openmp.GOMP_parallel(_Body(body), None, num_threads, 0)
    if errors:
        raise errors[0]


@contextmanager
def _caught(body: Callable[[int], None], errors: list[BaseException]) -> Iterator[None]:
    """Keep what a signal raises in the main thread before ``body`` can catch it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal comes here
        return
    before = sys.unraisablehook

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.object is body and unraisable.exc_value is not None:
            errors.append(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = before


def _run_in_pool(function: Callable[[], None], num_threads: int) -> None:
    """Let the threads of a pool, and the calling one, call ``function``."""
    pool = _pool(os.getpid(), num_threads)
    futures = [pool.submit(function) for _ in range(num_threads - 1)]
    try:
        function()
    finally:
        for future in futures:
            if not future.cancel():
                future.result()


@cache
def _openmp() -> ctypes.CDLL | None:
    """Return torch's library with the OpenMP it is linked to, or None if that is not GNU's."""
    library = ctypes.CDLL(torch._C.__file__)
    return library if hasattr(library, "GOMP_parallel") else None


@cache
def _pool(process: int, num_threads: int) -> ThreadPoolExecutor:
    """Return this process's pool, without the calling thread, which takes part too."""
    return ThreadPoolExecutor(num_threads - 1, thread_name_prefix="kergnn")


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
