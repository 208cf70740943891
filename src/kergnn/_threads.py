"""How many threads a computation takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Use so many threads, ``None`` for as many as before.

    Results depend on it in the last digits, and threads of small networks that share cores with
    other work wait for each other most of the time.
    """
    if count is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)
