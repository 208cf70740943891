"""``kergnn explain`` and the report at the end of ``kergnn train``, as a person calls them."""

import pytest

from kergnn.cli import main

SMALL = ["--hidden", "4", "--layers", "1", "--epochs", "2", "--quiet", "--out", "run"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def error_of(capsys, *arguments):
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    return line


def test_train_ends_with_a_report_and_explain_writes_others(capsys, tmp_path):
    assert main(["train", "MUTAG", *SMALL]) == 0
    assert "report" in capsys.readouterr().out.splitlines()[-1]
    first = (tmp_path / "run" / "report.html").read_text()
    assert (tmp_path / "run" / "figures" / "filters.svg").is_file()

    arguments = ["--threshold", "0.8", "--class", "1", "--out", "other", "--graphs", "3", "17"]
    assert main(["explain", "run", *arguments]) == 0
    assert "other/report.html" in capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "other" / "figures").iterdir()) == [
        "filters.svg",
        "graph-17.svg",
        "graph-3.svg",
    ]
    assert (tmp_path / "run" / "report.html").read_text() == first

    # A run that takes its place leaves nothing of it behind.
    assert main(["train", "MUTAG", *SMALL, "--force", "--no-report"]) == 0
    assert not (tmp_path / "run" / "report.html").exists()
    assert list((tmp_path / "run" / "figures").iterdir()) == []


def test_a_report_that_fails_does_not_cost_the_run(capsys, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no\nink")

    monkeypatch.setattr("kergnn.explain.report.write_report", fail)
    assert main(["train", "MUTAG", *SMALL]) == 0
    captured = capsys.readouterr()
    assert captured.err == ("kergnn: warning: no report could be written (RuntimeError: no ink)\n")
    assert "test accuracy" in captured.out
    assert (tmp_path / "run" / "results.json").is_file()


def test_other_models_have_no_report_and_no_explanation(capsys, tmp_path):
    assert main(["train", "MUTAG", "--model", "gin", *SMALL]) == 0
    assert not (tmp_path / "run" / "report.html").exists()
    capsys.readouterr()
    assert "its model is 'gin'; only runs of 'kergnn' can be explained" in error_of(
        capsys, "explain", "run"
    )


def test_mistakes_are_one_line(capsys, tmp_path):
    assert main(["train", "MUTAG", *SMALL, "--no-report"]) == 0
    capsys.readouterr()
    before = sorted(p.name for p in (tmp_path / "run").iterdir())
    for arguments, message in (
        (["explain"], "Missing argument"),
        (["explain", "nowhere"], "nowhere: there is no run here"),
        (["explain", "run", "--graphs", "188"], "graphs has 188: it must be from 0 to 187"),
        (["explain", "run", "3"], "--graphs 3 17"),
        (["explain", "run", "--class", "mutagen"], "it must be one of -1, 1"),
        (["explain", "run", "--threshold", "1.5"], "threshold is 1.5: it must be from 0 to 1"),
    ):
        assert message in error_of(capsys, *arguments)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == before
