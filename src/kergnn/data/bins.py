"""Bins of sizes: 0, 1, 2, 3, then two an octave, so that hubs and leaves fit into few columns."""

from __future__ import annotations

import math


def bin_limits(largest: int) -> list[int]:
    """Return where the bins begin, up to that of the largest: two of them an octave."""
    limits = [0, 1, 2, 3]
    while limits[-1] <= largest:
        limits.append(math.isqrt(2 ** len(limits) - 1) + 1)  # the root of 2^k, rounded up
    return [limit for limit in limits if limit <= largest]


def bin_names(limits: list[int]) -> list[str]:
    """Return what the bins are called, such as ``3`` and ``4 to 5``; the last one is open."""
    last = [following - 1 for following in limits[1:]]
    names = [str(a) if a == b else f"{a} to {b}" for a, b in zip(limits, last, strict=False)]
    return [*names, f"{limits[-1]} or more"]
