"""The store of results: a folder of JSON files, one for each trial and one for each evaluation.

    STORE/trials/DATASET/KEY.json           what one training gave
    STORE/evaluations/DATASET/NAME.json     what the trials of an evaluation amount to
    STORE/kernels/DATASET/NAME.safetensors  Gram matrices, which can be computed again

A file is written under another name, synced and renamed, so it is whole or not there, and carries a
checksum. Whoever works on a trial holds a lock on its byte of the file ``STORE/.lock``; the system
takes the lock away when the process ends, however it ends. So several processes may share a store.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kergnn.config import hash_json
from kergnn.data import DataError
from kergnn.data.store import write_atomic
from kergnn.evaluation.trial import FORMAT, Record
from kergnn.locks import Locks


class ResultStore:
    """The results in a folder; ``folder`` is made when the first record is written."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: not a directory")
        self.folder = folder
        self.locks = Locks(folder / ".lock")

    def trial(self, dataset: str, key: str) -> Record | None:
        """Return the record of a trial; ``None`` without one, or, with a warning, if unusable."""
        path = self._trial_path(dataset, key)
        record = _read(path) if path.exists() else None
        if record is not None and record.get("key") != key:
            warnings.warn(f"{path}: not the record its name says, so it is ignored", stacklevel=2)
            return None
        return record

    def add_trial(self, record: Record) -> None:
        """Write the record of a trial."""
        self._write(self._trial_path(record["dataset"], record["key"]), record)

    def evaluations(self) -> Iterator[Record]:
        """Yield the records of all evaluations, ordered by their files; warns of unusable ones."""
        for path in sorted(self.folder.glob("evaluations/*/*.json")):
            record = _read(path)
            if record is not None:
                yield record

    def add_evaluation(self, record: Record) -> None:
        """Write the record of an evaluation, in the place of an older one."""
        folder = self.folder / "evaluations" / safe_name(record["dataset"])
        self._write(folder / f"{safe_name(record['model'])}-{record['key'][:12]}.json", record)

    @property
    def kernels(self) -> Path:
        """The folder of Gram matrices."""
        return self.folder / "kernels"

    def _write(self, path: Path, record: Record) -> None:
        """Write a record to whose key this process has the sole right."""
        for leftover in path.parent.glob(f".{path.name}.*"):
            leftover.unlink()  # of a write that was killed
        checked = {**record, "checksum": hash_json(record)[:16]}
        # Lists of numbers on one line each: a record is to be read by people too.
        lines = (f"{json.dumps(name)}: {_pretty(value)}" for name, value in checked.items())
        write_atomic(path, ("{\n " + ",\n ".join(lines) + "\n}\n").encode())

    def _trial_path(self, dataset: str, key: str) -> Path:
        return self.folder / "trials" / safe_name(dataset) / f"{key}.json"


def safe_name(name: str) -> str:
    """Turn a name into one that can be a file's."""
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    return kept.lstrip(".") or "_"


def _pretty(value: Any) -> str:
    if isinstance(value, dict) and value:
        rows = (f"{json.dumps(str(name))}: {_line(item)}" for name, item in value.items())
        return "{\n  " + ",\n  ".join(rows) + "\n }"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n  " + ",\n  ".join(_line(item) for item in value) + "\n ]"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _read(path: Path) -> Record | None:
    """Return a record, or say why it cannot be used and return ``None``."""
    try:
        record = json.loads(path.read_text())
        content = {name: value for name, value in record.items() if name != "checksum"}
        if content["format"] != FORMAT:
            reason = f"written in format {content['format']}, and this version reads {FORMAT}"
        elif record["checksum"] != hash_json(content)[:16]:
            reason = "damaged, its checksum does not fit its content"
        else:
            return content
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"not a whole record ({type(error).__name__}: {error})"
    warnings.warn(f"{path}: {reason}, so it is ignored", stacklevel=3)
    return None
