"""Resident memory of processes, where the system tells it (Linux)."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path


def forget_peak() -> None:
    """Give freed memory back and let this process's peak begin anew."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int | None:
    """Return the most memory that this process has held since :func:`forget_peak`, in bytes."""
    return _status("self", "VmHWM")


def resident_memory(pid: int | None = None) -> int | None:
    """Return the memory that a process (by default this one) holds, in bytes."""
    return _status("self" if pid is None else str(pid), "VmRSS")


def _status(process: str, field: str) -> int | None:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return None
