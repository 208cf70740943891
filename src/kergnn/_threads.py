"""How many threads a computation takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from threading import Lock

import torch
from joblib import cpu_count
from threadpoolctl import threadpool_limits

_lock = Lock()
_wanted: dict[object, int] = {}  # by all who are at it, the last to come last
_before: list[tuple[int, threadpool_limits]] = []


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Use so many threads, ``None`` for as many as before.

    Results depend on it in the last digits, and threads of small networks that share cores with
    other work wait for each other most of the time. Calls may be nested, or be made by several
    Python threads, which leave in any order; the number belongs to the whole process.
    """
    if count is None:
        yield
        return
    me = object()
    with _lock:
        if not _wanted:
            _before[:] = [(torch.get_num_threads(), threadpool_limits(count))]
        _wanted[me] = count
        _set(count)
    try:
        yield
    finally:
        with _lock:
            del _wanted[me]
            if _wanted:
                _set(list(_wanted.values())[-1])
            else:
                ((threads, limits),) = _before
                torch.set_num_threads(threads)
                limits.restore_original_limits()


def num_threads(n_jobs: int | None) -> int:
    """Return the number of threads that scikit-learn's ``n_jobs`` means: -1 for all cores."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {n_jobs!r}: it must be None, a number of threads, or -1 for all cores"
        )
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def _set(count: int) -> None:
    torch.set_num_threads(count)
    threadpool_limits(count)
