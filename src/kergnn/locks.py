"""Locks that end with the process that holds them, however it ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:  # not on Windows: there only one process may work at a time
    fcntl = None  # type: ignore[assignment]


class Locks:
    """Sole rights to keys, held on bytes of one file; a key is a string of hexadecimal digits.

    A process must have one ``Locks`` of a file only: closing any descriptor of a file drops all
    locks that the process has on it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def claim(self, key: str, wait: bool = False) -> bool:
        """Try to get the sole right to a key; ``False`` if another process has it."""
        if fcntl is None:
            return True
        try:
            mode = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(self._open(), mode, 1, _byte(key))
        except BlockingIOError:
            return False
        except OSError as error:
            # A file system without locks: one process may work on it at a time.
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
        return True

    def release(self, key: str) -> None:
        """Give the right back."""
        if fcntl is not None and self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(key))

    def close(self) -> None:
        """Give all rights back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> int:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        return self._file


def _byte(key: str) -> int:
    return int(key[:15], 16)
