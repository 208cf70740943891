"""Numbers too small to matter, which most processors are slow with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Take numbers below 1e-38 for zero, where the processor can; other threads are left alone.

    Adam's moments of weights with small or no gradients, such as the vectors of rare words, shrink
    below that within some hundred steps, and a step takes several times as long.
    """
    before = bool(torch.tensor(2e-38, dtype=torch.float32, device="cpu") * 0.1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
