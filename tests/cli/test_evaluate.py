import errno
import os
import tempfile

import pytest

from kergnn.cli import main
from kergnn.evaluation import ResultStore
from kergnn.evaluation import trial as trials

GRID = "hidden_channels = 4\nnum_layers = [1, 2]\nepochs = 2\n"
SMALL = ["--grid", "grid.toml", "--folds", "2", "--repeats", "1", "--store", "store"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)


def run(capsys, *arguments, code=0):
    """Run a command; returns what it printed, or its one line of error."""
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    if code == 0:
        return captured.out
    (line,) = captured.err.splitlines()
    assert line.startswith("kergnn: ")
    return line


def test_evaluate_reports_and_table_shows_it(capsys, tmp_path):
    out = run(capsys, "evaluate", "MUTAG", *SMALL)
    assert "2 folds (drawn-0 to drawn-1), 2 configurations (grid: num_layers), 1 repeat" in out
    assert "6 of 6 trials done" in out
    assert "fold 1 (drawn-1): test accuracy" in out
    assert len(list((tmp_path / "store" / "trials" / "MUTAG").glob("*.json"))) == 6
    table = run(capsys, "table", "--store", "store", "--format", "csv")
    mine = [line for line in table.splitlines() if line.startswith("MUTAG")]
    assert len(mine) == 1
    assert ",2,measured,graph," in mine[0]
    accuracy = mine[0].split(",")[2][:-1]
    assert f"test accuracy {float(accuracy):.1f}" in out or accuracy in out
    run(capsys, "table", "--store", "store", "--format", "html", "--out", "t.html")
    assert "MUTAG" in (tmp_path / "t.html").read_text()
    run(capsys, "table", "--store", "store", "--plot", "t.svg")
    assert (tmp_path / "t.svg").stat().st_size > 5000


def test_a_table_writes_what_most_folds_selected(capsys, tmp_path):
    (tmp_path / "wl.toml").write_text("[options]\nnum_iterations = 1\nC = 10.0\n")
    write = ["table", "--store", "store", "--configs", "chosen", "--all-models"]
    run(capsys, "evaluate", "MUTAG", "--model", "wl", *SMALL, "--grid", "wl.toml")
    assert "store: no evaluation here has all ten folds" in run(capsys, *write, code=2)
    store = ResultStore(tmp_path / "store")
    (record,) = store.evaluations()
    store.add_evaluation({**record, "folds": 5 * record["folds"], "folds_done": 10})
    store.add_evaluation({**record, "key": "f" * 24, "mean": 0.987})  # two folds: does not count
    path = tmp_path / "chosen" / "mutag-wl.toml"
    assert run(capsys, *write) == f"{path.relative_to(tmp_path)} written\n"
    assert "# MUTAG, wl: what 10 of 10 folds selected, of 1 configuration." in path.read_text()
    assert "98.7" not in run(capsys, "table", "--store", "store")
    assert "98.7" in run(capsys, "table", "--store", "store", "--all-evaluations")
    assert run(capsys, *write, "--all-evaluations") == f"{path.relative_to(tmp_path)} written\n"
    assert "10 of 10 folds" in path.read_text()
    both = ["table", "--store", "store", "--summary", "--all-evaluations"]
    assert "no place in a summary" in run(capsys, *both, code=2)
    message = run(capsys, *write[:-1], code=2)
    assert "store: no evaluation of kergnn here has all ten folds" in message


def test_quick_looks_fix_keys(capsys):
    out = run(
        capsys,
        "evaluate",
        "MUTAG",
        *SMALL,
        "--epochs",
        "1",
        "--set",
        "num_layers=1",
        "--folds",
        "1",
    )
    assert "1 configuration (grid: nothing to select)" in out


def test_halving_and_random_search_run(capsys):
    for more in (["--search", "halving"], ["--search", "random", "--trials", "2"]):
        out = run(capsys, "evaluate", "MUTAG", *SMALL, "--folds", "1", "--quiet", *more)
        assert "MUTAG, kergnn: test accuracy" in out


def test_networks_that_say_one_class_only_are_told_of(capsys, tmp_path):
    """Graphs that are all alike have one class for any network."""
    lines = [f'{{"nodes": ["C", "C"], "edges": [[0, 1]], "label": "{c}"}}' for c in "ab" * 20]
    (tmp_path / "alike.jsonl").write_text("\n".join(lines))
    out = run(capsys, "evaluate", "alike.jsonl", *SMALL)
    assert "2 runs predicted a single class for a test part of several" in out
    assert "2 runs of one class only" in run(capsys, "table", "--store", "store")


def test_a_crashing_configuration_is_in_the_table(capsys, tmp_path):
    (tmp_path / "grid.toml").write_text("hidden_channels=4\nepochs=1\nlearning_rate=[0.01, 1e30]")
    out = run(capsys, "evaluate", "MUTAG", *SMALL)
    assert "2 trials failed, 0 folds without a result; --retry-failed tries again" in out
    assert "2 trials failed" in run(capsys, "table", "--store", "store")


def test_a_table_without_results_shows_the_published_ones(capsys):
    assert "GNTK" in run(capsys, "table")
    assert "no such folder" in run(capsys, "table", "--no-published", code=2)
    os.mkdir("empty")
    message = run(capsys, "table", "--store", "empty", "--no-published", code=2)
    assert "empty: no results here" in message


def test_selection_alone_shows_validation_scores_and_no_test(capsys, monkeypatch):
    monkeypatch.setattr(trials, "_test", lambda *_: pytest.fail("the test part was looked at"))
    out = run(capsys, "evaluate", "MUTAG", *SMALL, "--select-only")
    assert "the test parts are left alone" in out
    rows = [line for line in out.splitlines() if "num_layers=" in line]
    means = [float(line.partition(" ")[0]) for line in rows]
    assert means == sorted(means, reverse=True)
    assert len(rows) == 2
    assert "test accuracy" not in out
    assert "no results here" in run(capsys, "table", "--store", "store", "--no-published", code=2)


def test_selection_alone_needs_scores_to_show(capsys):
    few = ["evaluate", "MUTAG", *SMALL, "--select-only"]
    assert "--search halving" in run(capsys, *few, "--search", "halving", code=2)
    message = run(capsys, *few, "--set", "learning_rate=1e30", code=1)
    assert "no configuration could be trained" in message


def test_a_table_of_a_missing_store_is_refused_and_names_may_be_small(capsys):
    assert "nowhere: no such folder" in run(capsys, "table", "--store", "nowhere", code=2)
    assert "NCI1" in run(capsys, "table", "--dataset", "nci1")


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_damaged_record_is_named_and_run_again(capsys, tmp_path):
    run(capsys, "evaluate", "MUTAG", *SMALL)
    before = run(capsys, "table", "--store", "store", "--format", "csv")
    path = next((tmp_path / "store" / "trials" / "MUTAG").glob("*.json"))
    path.write_text(path.read_text()[:100])
    assert main(["evaluate", "MUTAG", *SMALL]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kergnn: warning: ")
    assert f"{path.name}: not a whole record" in line
    assert run(capsys, "table", "--store", "store", "--format", "csv") == before


def test_a_read_only_store_is_one_line(capsys, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    message = run(capsys, "evaluate", "MUTAG", *SMALL, "--quiet", code=1)
    assert message.endswith(".json: Read-only file system")


def test_ctrl_c_says_how_to_go_on(capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "train", interrupt)
    assert run(capsys, "evaluate", "MUTAG", *SMALL, "--quiet", code=130) == (
        "kergnn: interrupted; the same command goes on"
    )
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MUTAG", "--grid", "missing.toml"], "missing.toml: no such file or folder"),
        (["MUTAG", "--model", "nothing"], "model is 'nothing'"),
        (["MUTAG", "--executor", "magic"], "executor is 'magic'"),
        (["MUTAG", "--workers", "0"], "workers is 0: it must be at least 1"),
        (["MUTAG", "--folds", "11"], "folds is 11"),
        (["MUTAG", "--set", "epoch=3"], "unknown key 'epoch'"),
        (["MUTAG", "--epochs", "0"], "epochs is 0"),
        (["MUTAG", "--set", "kernel=foo"], "kernel is 'foo'"),
        (["MUTAG", "--set", "num_layers=-1"], "num_layers is -1"),
        (["MUTAG", "--set", "dropout=1.5"], "dropout is 1.5"),
        (["MUTAG", "--model", "gin", "--set", "options.heads=3"], "the options of 'gin' are"),
        (["MUTAG", "--model", "wl", "--set", "options.C=-1"], "C is -1"),
        (["MUTAG", "--model", "wl", "--set", "options.foo=1"], "the options of 'wl' are"),
        (["MUTAG", "--executor", "processes", "--ray-address", "x:1"], "--ray-address needs"),
        (["MUTAG", "--store", "grid.toml"], "grid.toml: not a directory"),
        (["nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_mistakes_are_one_line(capsys, arguments, message):
    assert message in run(capsys, "evaluate", *arguments, code=2)


def test_a_table_refuses_what_it_does_not_know(capsys):
    assert "format is 'word'" in run(capsys, "table", "--format", "word", code=2)
    assert "dataset is 'NCI'" in run(capsys, "table", "--dataset", "NCI", code=2)


def test_an_evaluation_without_a_result_says_why_and_fails(capsys):
    message = run(capsys, "evaluate", "MUTAG", *SMALL, "--set", "learning_rate=1e30", code=1)
    assert "no fold could be finished" in message
    assert "training diverged in epoch 1" in message
