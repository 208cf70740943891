"""The kernels by name. A new kernel is one file with one decorated function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor

KernelFunction: TypeAlias = Callable[..., Tensor]
Shape: TypeAlias = Callable[[int, int], tuple[int, ...]]


@dataclass(frozen=True)
class Kernel:
    """A kernel function and what a layer must know to use it.

    Args:
        name: the name users write, as in ``KerGNNConv(..., kernel="rw")``.
        function: the pure function, see :mod:`kergnn.kernels`.
        parameters: trainable tensors beside the filter itself: for each name a function from
            (filter_size, num_hops) to the shape for one filter. They start at one.
        filter_size: the only filter size the kernel is defined for; ``None`` for any.
        walks: whether there is a term for each number of steps; otherwise there is one term.
    """

    name: str
    function: KernelFunction
    parameters: Mapping[str, Shape] = field(default_factory=dict)
    filter_size: int | None = None
    walks: bool = True


_KERNELS: dict[str, Kernel] = {}


def register_kernel(
    name: str,
    *,
    parameters: Mapping[str, Shape] | None = None,
    filter_size: int | None = None,
    walks: bool = True,
) -> Callable[[KernelFunction], KernelFunction]:
    """Make the decorated function available as kernel ``name``; see :class:`Kernel`."""

    def register(function: KernelFunction) -> KernelFunction:
        if name in _KERNELS:
            raise ValueError(f"kernel {name!r} is registered already")
        _KERNELS[name] = Kernel(name, function, parameters or {}, filter_size, walks)
        return function

    return register


def get_kernel(name: str) -> Kernel:
    """Return the kernel called ``name``."""
    if name not in _KERNELS:
        allowed = ", ".join(repr(n) for n in _KERNELS)
        raise ValueError(f"kernel is {name!r}: it must be one of {allowed}")
    return _KERNELS[name]


def kernel_names() -> list[str]:
    """Return the names of all registered kernels."""
    return list(_KERNELS)
