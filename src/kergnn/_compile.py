"""Functions that Numba compiles when they are first called: the one place that knows how.

Nothing here is needed for a right result. Where Numba cannot be imported the functions are plain
Python, and where no folder can be written to they are compiled anew in every process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_fault = ""
try:
    import numba
except ImportError as error:  # it is missing, or refuses the version of NumPy
    numba, _fault = None, str(error)

Function = TypeVar("Function", bound=Callable[..., Any])

_warned: set[str] = set()


def compiled(function: Function, **options: Any) -> Function:
    """Let Numba compile a function at its first call, without the GIL, and keep the code on disk.

    Args:
        function: a function on numbers and NumPy arrays; it may call other compiled functions.
        **options: further options of ``numba.njit``.
    """
    result: Function
    if numba is None:
        result = _plain(function)
        return result
    try:
        result = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError as error:  # no folder; Numba looks for one before it compiles anything
        _warn_once(
            "no cache",
            "compiled code is not kept, so every process compiles it again: NUMBA_CACHE_DIR must "
            f"name a folder that can be written to ({error})",
        )
        result = numba.njit(nogil=True, **options)(function)
    return result


def numba_is_missing() -> bool:
    """Return whether Numba cannot be imported; if so, a warning says it, once a process."""
    if numba is None:
        _warn_once(
            "no numba",
            "engine 'torch' is used, and plain Python for what else is compiled, which is slow: "
            f"Numba cannot be imported ({_fault})",
        )
    return numba is None


def _plain(function: Callable[..., Any]) -> Any:
    """Return the function as it is, but for the warning."""

    @wraps(function)
    def warn_and_call(*args: Any) -> Any:
        numba_is_missing()
        return function(*args)

    return warn_and_call


def _warn_once(key: str, message: str) -> None:
    if key not in _warned:
        _warned.add(key)
        warnings.warn(message, stacklevel=3)
