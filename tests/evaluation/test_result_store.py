import errno
import json
import os
import subprocess
import sys
import warnings

import pytest

from kergnn.data import DataError
from kergnn.evaluation import ResultStore

KEY = "0123456789abcdef01234567"


def record(**changes):
    made = {"format": 1, "key": KEY, "dataset": "MUTAG", "history": {"loss": [0.5, 0.25]}}
    return {**made, **changes}


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.add_trial(record())
    return store


def path_of(store):
    return store.folder / "trials" / "MUTAG" / f"{KEY}.json"


def test_a_record_comes_back_and_can_be_read_by_people(store):
    assert store.trial("MUTAG", KEY) == record()
    assert store.trial("MUTAG", "f" * 24) is None
    text = path_of(store).read_text()
    assert '\n  "loss": [0.5, 0.25]\n' in text
    assert json.loads(text)["history"] == {"loss": [0.5, 0.25]}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "not a whole record"),
        (lambda text: "", "not a whole record"),
        (lambda text: "[1, 2]", "not a whole record"),
        (lambda text: text.replace("0.25", "0.26"), "its checksum does not fit"),
        (lambda text: text.replace('"format": 1', '"format": 7'), "written in format 7"),
    ],
)
def test_a_damaged_or_foreign_record_is_ignored_with_a_warning(store, damage, message):
    store.add_trial(record(key="f" * 24))
    path_of(store).write_text(damage(path_of(store).read_text()))
    with pytest.warns(UserWarning, match=message):
        assert store.trial("MUTAG", KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.trial("MUTAG", "f" * 24) is not None
    store.add_trial(record())
    assert store.trial("MUTAG", KEY) == record()


def test_a_record_under_another_name_is_ignored(store):
    os.rename(path_of(store), path_of(store).with_name(f"{'a' * 24}.json"))
    with pytest.warns(UserWarning, match="not the record its name says"):
        assert store.trial("MUTAG", "a" * 24) is None


def test_a_full_disk_names_the_file_and_leaves_the_old_record(store, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        store.add_trial(record(history={}))
    assert caught.value.filename == str(path_of(store))
    assert store.trial("MUTAG", KEY) == record()
    assert [p.name for p in path_of(store).parent.iterdir()] == [f"{KEY}.json"]


def test_a_record_is_replaced_at_once(store, monkeypatch):
    """Whoever reads while it is written sees the old record."""
    seen = []
    replace = os.replace

    def spying(source, target):
        seen.append(store.trial("MUTAG", KEY))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spying)
    store.add_trial(record(history={}))
    assert seen == [record()]
    assert store.trial("MUTAG", KEY) == record(history={})


def test_what_is_not_a_number_is_not_written(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.add_trial(record(history={"loss": [float("nan")]}))
    assert store.trial("MUTAG", KEY) == record()


def test_leftovers_of_a_killed_write_go(store):
    leftover = path_of(store).with_name(f".{KEY}.json.abc")
    leftover.write_text("half")
    store.add_trial(record())
    assert not leftover.exists()


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="not a directory"):
        ResultStore(tmp_path / "file")


def test_names_of_data_sets_cannot_leave_the_store(store):
    store.add_trial(record(dataset="../../etc"))
    assert store.trial("../../etc", KEY) is not None
    assert len(list(store.folder.rglob("*.json"))) == 2


def claims(store, key):
    """Ask another process whether it could claim a key."""
    code = (
        "import sys; from pathlib import Path; from kergnn.evaluation.store import ResultStore;"
        "print(ResultStore(Path(sys.argv[1])).locks.claim(sys.argv[2]))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(store.folder), key]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_trial_is_claimed_by_one_process_until_it_lets_go(store):
    assert store.locks.claim(KEY)
    assert claims(store, KEY) == "False"
    assert claims(store, "f" * 24) == "True"
    store.locks.release(KEY)
    assert claims(store, KEY) == "True"  # and it died with the claim
    assert store.locks.claim(KEY)
    store.locks.close()
    assert claims(store, KEY) == "True"
