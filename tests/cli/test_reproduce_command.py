import json

import pytest

from kergnn.cli import main
from kergnn.evaluation import ResultStore

SMALL = ["--set", "hidden_channels=4", "--set", "num_layers=1", "--set", "kernel=rw"]


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch, capsys):
    """A fold of MUTAG with one run."""
    monkeypatch.chdir(tmp_path)
    few = ["--folds", "1", "--repeats", "1", "--epochs", "2", "--quiet"]
    assert main(["evaluate", "MUTAG", *SMALL, *few]) == 0
    capsys.readouterr()
    return ResultStore(tmp_path / "results")


def test_equal_digits_are_a_table_and_exit_code_0(capsys):
    assert main(["reproduce", "MUTAG"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0].split() == ["run", "figure", "stored", "again", "equal"]
    assert [line.split()[-1] for line in lines[1:-1]] == ["yes"] * 11
    assert lines[-1] == "fold 0 of kergnn on MUTAG is what is stored, to the last digit"


def test_another_prediction_is_one_line_and_exit_code_1(capsys, store):
    (path,) = (
        path
        for path in store.folder.glob("trials/MUTAG/*.json")
        if json.loads(path.read_text())["kind"] == "assessment"
    )
    record = store.trial("MUTAG", path.stem)
    record["predictions"]["predicted"][0] = 1 - record["predictions"]["predicted"][0]
    record["versions"]["numpy"] = "1.0"
    store.add_trial(record)
    assert main(["reproduce", "MUTAG", "--run", "0"]) == 1
    captured = capsys.readouterr()
    (changed,) = (line for line in captured.out.splitlines() if line.split()[-1] == "NO")
    assert "predicted classes" in changed
    (line,) = captured.err.splitlines()
    start = "kergnn: run 0 of fold 0 of kergnn on MUTAG is not what is stored: numpy was 1.0"
    assert line.startswith(start)


def test_mistakes_are_one_line(capsys):
    for arguments, message in (
        (["MUTAG", "--fold", "1"], "fold is 1"),
        (["MUTAG", "--run", "1"], "run is 1"),
        (["NCI1"], "dataset is 'NCI1'"),
        (["nowhere.jsonl"], "dataset is 'nowhere.jsonl'"),
        (["MUTAG", "--model", "gin"], "has gin on no set"),
        (["MUTAG", "--store", "nowhere"], "nowhere: no such folder"),
    ):
        assert main(["reproduce", *arguments]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
