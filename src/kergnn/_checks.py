"""Checks of arguments: each raises ``ValueError`` with the name, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import torch
from torch import Tensor


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an ``int`` that is at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} is {value!r}: it must be an integer of at least {minimum}")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Accept only one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        allowed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} is {value!r}: it must be one of {allowed}")


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Accept an integer tensor of shape (2, E) with node ids from 0 to ``num_nodes`` - 1."""
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            f"edge_index is a {type(edge_index).__name__}: it must be an integer tensor (2, E)"
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index has shape {tuple(edge_index.shape)}: it must be (2, E)")
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise ValueError(f"edge_index has dtype {edge_index.dtype}: it must be an integer type")
    if edge_index.numel() == 0:
        return
    low, high = int(edge_index.min()), int(edge_index.max())
    if low < 0 or high >= num_nodes:
        value = low if low < 0 else high
        raise ValueError(
            f"edge_index contains {value}: node ids must be from 0 to num_nodes - 1 = "
            f"{num_nodes - 1}"
        )


def check_features(x: Tensor, num_nodes: int, in_channels: int) -> None:
    """Accept finite floating-point features of shape (num_nodes, in_channels)."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"x is {kind}: it must be a floating-point tensor (N, in_channels)")
    if x.dim() != 2 or x.size(0) != num_nodes or x.size(1) != in_channels:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: it must be (N, in_channels) = "
            f"({num_nodes}, {in_channels})"
        )
    if torch.isfinite(x.sum()):  # one pass: a single NaN or infinity would show in the sum
        return
    finite = torch.isfinite(x)
    if not finite.all():
        row, col = (int(i) for i in (~finite).nonzero()[0])
        raise ValueError(f"x[{row}, {col}] is {x[row, col].item()}: features must be finite")
