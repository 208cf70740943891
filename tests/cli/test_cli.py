"""The commands as a person calls them: exit codes, one line on standard error, files left."""

import csv
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kergnn import KerGNN, preparation, runs, training
from kergnn.cli import main
from kergnn.data import RECIPES, Features, get_split, load_graphs

SMALL = ["--hidden", "4", "--layers", "1", "--epochs", "3", "--set", "batch_size=32", "--no-report"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def error_of(capsys, *arguments):
    """Run a command that must fail on bad input; returns its one line."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("kergnn: ")
    assert "Traceback" not in line
    return line


def write_graphs(path, count=30, **changes):
    """Rings and paths, of classes ring and path."""
    with path.open("w") as file:
        for i in range(count):
            n = 5 + i % 4
            edges = [[j, j + 1] for j in range(n - 1)] + ([[n - 1, 0]] if i % 2 else [])
            label = "ring" if i % 2 else "path"
            record = {"nodes": ["C"] * n, "edges": edges, "label": label, **changes}
            file.write(json.dumps({k: v for k, v in record.items() if v is not None}) + "\n")
    return path


def test_train_leaves_a_whole_run_and_predict_uses_it(capsys, tmp_path):
    assert main(["train", "MUTAG", *SMALL, "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "epoch 3/3" in out
    assert "test accuracy" in out
    run = tmp_path / "run"
    assert sorted(p.name for p in run.iterdir()) == [
        "config.toml",
        "curves.svg",
        "metrics.csv",
        "model.safetensors",
        "predictions.csv",
        "results.json",
        "run.json",
    ]
    assert 'features = "label"' in (run / "config.toml").read_text()
    assert (run / "curves.svg").read_text().startswith("<?xml")
    record = json.loads((run / "run.json").read_text())
    assert record["split_sizes"] == [152, 17, 19]
    assert torch.__version__ == record["versions"]["torch"]

    rows = list(csv.DictReader((run / "predictions.csv").read_text().splitlines()))
    graphs = load_graphs("MUTAG")
    assert len(rows) == 19
    assert all(r["true"] == graphs.class_names[graphs.y[int(r["graph"])]] for r in rows)
    correct = sum(r["true"] == r["predicted"] for r in rows) / 19
    assert json.loads((run / "results.json").read_text())["test"]["accuracy"] == correct

    assert main(["predict", "run", "MUTAG", "--out", "p.csv"]) == 0
    predicted = {
        r["graph"]: r for r in csv.DictReader((tmp_path / "p.csv").read_text().splitlines())
    }
    assert len(predicted) == 188
    for row in rows:
        assert predicted[row["graph"]]["predicted"] == row["predicted"]
        assert float(predicted[row["graph"]]["p(1)"]) == pytest.approx(float(row["p(1)"]), abs=2e-5)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"recipe": "label", "label_names": [["C"]]}, "those of an earlier version: train again"),
        ({"recipe": "label", "parts": [None]}, "run.json: not the record of a run"),
        ({"recipe": "label", "parts": [{"label_names": None, "label_columns": []}]}, "not the rec"),
        ({"recipe": "label", "parts": []}, "run.json: not the record of a run"),
    ],
)
def test_a_record_that_cannot_be_used_is_named(features, message, capsys, tmp_path):
    assert main(["train", "MUTAG", *SMALL, "--out", "run"]) == 0
    path = tmp_path / "run" / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "features": {"edge_names": [], **features}}))
    capsys.readouterr()
    assert main(["predict", "run", "MUTAG"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_train_with_what_was_selected_says_what_its_test_is_worth(capsys, tmp_path):
    few = ["--epochs", "1", "--quiet", "--no-report", "--config", "selected"]
    assert main(["train", "MUTAG", *few, "--hidden", "4"]) == 0
    assert "test figures are not independent" in capsys.readouterr().out
    written = (tmp_path / "runs" / "MUTAG" / "config.toml").read_text()
    assert 'keep_epoch = "last"\n' in written  # the default is the best one
    assert "hidden_channels = 4\n" in written
    message = error_of(capsys, "train", "Mutagenicity", *few)
    assert "no selected configuration is shipped for kergnn on Mutagenicity" in message
    message = error_of(capsys, "train", "MUTAG", *few, "--set", "model=gin")
    assert "no selected configuration is shipped for gin on MUTAG" in message


def test_a_class_of_too_few_graphs_is_told_of(capsys, tmp_path):
    """A mistyped class is one of its own: it must not pass in silence."""
    path = write_graphs(tmp_path / "mine.jsonl")
    with path.open("a") as file:
        file.write(json.dumps({"nodes": ["C"] * 3, "edges": [[0, 1]], "label": "rnig"}) + "\n")
    assert main(["train", "mine.jsonl", *SMALL]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "too few" in line]
    assert told == ["too few graphs for training, validation and test: class rnig (1)"]


def test_an_id_in_place_of_the_class_is_told_of_in_one_line(capsys, tmp_path):
    path = write_graphs(tmp_path / "mine.jsonl")
    with path.open("a") as file:
        for i in range(8):
            file.write(json.dumps({"nodes": ["C"], "edges": [], "label": f"id{i}"}) + "\n")
    assert main(["train", "mine.jsonl", *SMALL]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "too few" in line]
    assert len(told) == 1
    assert told[0].endswith("class id0 (1), id1 (1), id2 (1), id3 (1), id4 (1) and 3 more")


def test_the_time_of_an_epoch_is_not_that_of_the_compiler(capsys, monkeypatch, tmp_path):
    """The first epoch of a first training waits for the compiler, which says nothing of others."""
    ends = [0, 100, *(100 + 0.5 * i for i in range(1, 12))]
    readings = iter([t for pair in itertools.pairwise(ends) for t in pair])
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    assert main(["train", "MUTAG", *SMALL, "--epochs", "12", "--out", "run"]) == 0
    first, *others = re.findall(r"^epoch .*", capsys.readouterr().out, re.MULTILINE)
    assert "left" not in first
    assert [line.split("  ")[-1] for line in others] == ["at most 1 s left", "at most 0 s left"]
    assert json.loads((tmp_path / "run" / "results.json").read_text())["seconds_per_epoch"] == 0.5

    readings = iter([0, 100, 100, 100.5])
    assert main(["train", "MUTAG", *SMALL, "--epochs", "2", "--out", "short"]) == 0
    assert "0.50 s an epoch, 100 s in all" in capsys.readouterr().out


def test_bench_asks_for_a_place_to_write_before_it_measures(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    message = error_of(capsys, "bench", "--quick", "--out", "results")
    assert message == f"kergnn: {Path.cwd()}: not a directory that can be written to"


@pytest.mark.filterwarnings("default:.*which the model does not know")
def test_train_on_graphs_of_ones_own_and_predict_without_labels(capsys, tmp_path):
    write_graphs(tmp_path / "mine.jsonl")
    assert main(["train", "mine.jsonl", *SMALL, "--quiet"]) == 0
    assert (tmp_path / "runs" / "mine" / "model.safetensors").is_file()
    write_graphs(tmp_path / "new.jsonl", count=3, label=None)
    capsys.readouterr()
    assert main(["predict", "runs/mine", "new.jsonl"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [r["graph"] for r in rows] == ["0", "1", "2"]
    assert {r["predicted"] for r in rows} <= {"ring", "path"}
    assert all(
        float(r["p(ring)"]) + float(r["p(path)"]) == pytest.approx(1, abs=2e-6) for r in rows
    )

    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"nodes": ["C", "Xx"], "edges": [[0, 1]]}))
    assert "node label 'Xx', which the model does not know" in error_of(
        capsys, "predict", "runs/mine", "bad.jsonl"
    )
    assert main(["predict", "runs/mine", "bad.jsonl", "--unknown", "zeros"]) == 0
    shown = capsys.readouterr()
    assert "warning: bad, graph 0 has node label 'Xx'" in shown.err
    (row,) = csv.DictReader(shown.out.splitlines())
    assert row["predicted"] in ("ring", "path")
    message = error_of(capsys, "predict", "runs/mine", "bad.jsonl", "--unknown", "drop")
    assert "unknown is 'drop': it must be one of 'error', 'zeros'" in message


def test_a_network_that_has_learned_nothing_is_told_of(capsys, tmp_path):
    lines = write_graphs(tmp_path / "graphs.jsonl", 40).read_text().splitlines()
    (tmp_path / "alike.jsonl").write_text("\n".join(lines[:2] * 20))
    alike = json.loads(lines[0])
    noise = [{**alike, "label": "ab"[i % 2]} for i in range(40)]
    (tmp_path / "noise.jsonl").write_text("\n".join(map(json.dumps, noise)))
    assert main(["train", "noise.jsonl", *SMALL]) == 0
    assert "no better than a guess" in capsys.readouterr().out
    (tmp_path / "rare.jsonl").write_text("\n".join([lines[0]] * 57 + [lines[1]] * 3))
    for own in ("alike", "rare"):  # the second has one class in its validation part
        assert main(["train", f"{own}.jsonl", *SMALL, "--epochs", "30"]) == 0
        assert "no better than a guess" not in capsys.readouterr().out


def test_nodes_of_ones_own_graph(capsys, tmp_path):
    edges = [[i, (i + 1) % 30] for i in range(30)]
    targets = ["even" if i % 2 else "odd" for i in range(30)]
    features = [[float(i % 2), 1.0] for i in range(30)]
    record = {"nodes": 30, "edges": edges, "features": features, "targets": targets}
    (tmp_path / "net.jsonl").write_text(json.dumps(record))
    assert main(["train", "net.jsonl", *SMALL, "--epochs", "20", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["predict", "run", "net.jsonl"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(r["graph"], r["node"]) for r in rows] == [("0", str(i)) for i in range(30)]
    assert sum(r["predicted"] == t for r, t in zip(rows, targets, strict=True)) > 25


def test_a_second_run_does_not_overwrite_the_first(capsys, tmp_path):
    for _ in range(2):
        assert main(["train", *SMALL, "--quiet"]) == 0
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["MUTAG", "MUTAG-2"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert "full: not empty; --force" in error_of(capsys, "train", *SMALL, "--out", "full")
    assert "not a run, so --force does not" in error_of(
        capsys, "train", *SMALL, "--out", "full", "--force"
    )
    assert main(["train", *SMALL, "--quiet", "--out", "runs/MUTAG", "--seed", "1", "--force"]) == 0
    assert "seed = 1" in (tmp_path / "runs" / "MUTAG" / "config.toml").read_text()


@pytest.mark.parametrize(
    "mistake", [["--kernel", "wl"], ["--features", "attr"], ["missing.jsonl"], ["--fold", "11"]]
)
def test_a_mistake_does_not_cost_the_run_that_was_to_be_replaced(capsys, tmp_path, mistake):
    assert main(["train", *SMALL, "--quiet", "--out", "run"]) == 0
    capsys.readouterr()
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    error_of(capsys, "train", *SMALL, *mistake, "--out", "run", "--force")
    assert {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before


def test_predictions_repeat_ids_and_classes_and_never_overwrite_their_input(capsys, tmp_path):
    assert main(["train", *SMALL, "--quiet", "--out", "run"]) == 0
    record = {"nodes": ["0", "0", "1"], "edges": [[0, 1], [1, 2]], "id": "x7", "label": 1}
    (tmp_path / "new.jsonl").write_text(json.dumps(record))
    capsys.readouterr()
    assert "would overwrite the input" in error_of(
        capsys, "predict", "run", "new.jsonl", "--out", "new.jsonl"
    )
    assert main(["predict", "run", "new.jsonl", "--out", "p.csv"]) == 0
    (row,) = csv.DictReader((tmp_path / "p.csv").read_text().splitlines())
    assert (row["id"], row["true"]) == ("x7", "1")
    right = int(row["predicted"] == "1")
    assert f"{right} of 1 are right" in capsys.readouterr().out


def test_divergence_is_not_blamed_on_the_input(capsys):
    arguments = ["train", *SMALL, "--set", "learning_rate=1e30", "--set", "clip=none", "--quiet"]
    assert main(arguments) == 1
    assert "training diverged in epoch" in capsys.readouterr().err


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    assert "kergnn train MUTAG" in capsys.readouterr().out


def test_settings_come_from_file_options_and_assignments(tmp_path):
    (tmp_path / "c.toml").write_text("epochs = 2\nhidden_channels = 5\nnum_layers = 1\nseed = 4\n")
    options = ["--config", "c.toml", "--hidden", "6", "--steps", "3", "--out", "run"]
    options += ["--set", "num_steps=1", "--no-report"]
    assert main(["train", "MUTAG", *options, "--quiet"]) == 0
    text = (tmp_path / "run" / "config.toml").read_text()
    for line in ("epochs = 2", "hidden_channels = 6", "num_steps = 1", "seed = 4"):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--epoch", "3"], "No such option"),
        (["trian"], "No such command"),
        (["train", "--epochs", "many"], "Invalid value for '--epochs'"),
        (["train", "missing.jsonl"], "missing.jsonl: no such file or folder"),
        (["train", "--set", "layers=2"], "unknown key 'layers'"),
        (["train", "--config", "nowhere.toml"], "nowhere.toml: no such file"),
        (["train", "--kernel", "wl"], "kernel is 'wl': it must be one of"),
        (["train", "--hidden", "0"], "hidden_channels is 0"),
        (["train", "--features", "attr"], "features is 'attr', but MUTAG has no attributes"),
        (["train", "--task", "node"], "task is 'node', but MUTAG has classes for graphs"),
        (["train", "--task", "edge"], "task is 'edge': it must be 'graph' or 'node'"),
        (["train", "--kernel", "rw:16,drw"], "kernel is 'rw:16,drw': it must be a name, or as in"),
        (["train", "--set", "step_weights=1,2"], "num_steps + 1 = 3 finite numbers"),
        (["train", "--set", "clip=0"], "clip is 0.0: it must be above 0"),
        (["train", "--fold", "10"], "fold is 10: it must be from 0 to 9"),
        (["train", "--set", "splits=mine"], "splits is 'mine'"),
        (["train", "--device", "abacus"], "device is 'abacus'"),
        (["train", "--data-mirror", "nowhere"], "nowhere: the mirror directory does not exist"),
        (["train", "--resume", "nowhere"], "nowhere: there is no run here"),
        (["train", "--resume", "x", "--epochs", "3"], "epochs is fixed"),
        (["predict", "nowhere", "MUTAG"], "nowhere: there is no run here"),
        (["predict", "x"], "Missing argument"),
        (["datasets", "mine.jsonl"], "mine.jsonl: no such file"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(capsys, tmp_path, arguments, message):
    assert message in error_of(capsys, *arguments)
    assert [p for p in tmp_path.rglob("*") if "cache" not in p.parts] == []


def test_debug_shows_the_traceback():
    for arguments in (["--debug", "train"], ["train", "--debug"]):
        with pytest.raises(ValueError, match="kernel is 'wl'"):
            main([*arguments, "--kernel", "wl"])


def test_a_pickle_in_place_of_the_weights_is_refused(capsys, tmp_path):
    assert main(["train", *SMALL, "--quiet", "--out", "run"]) == 0
    capsys.readouterr()

    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    torch.save(Malicious(), tmp_path / "run" / "model.safetensors")
    assert "not a whole safetensors file" in error_of(capsys, "predict", "run", "MUTAG")
    (tmp_path / "run" / "results.json").unlink()
    torch.save(Malicious(), tmp_path / "run" / "checkpoint.safetensors")
    assert "not a whole safetensors file" in error_of(capsys, "train", "--resume", "run")
    assert not (tmp_path / "executed").exists()


def test_help_is_one_screen(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 40
    for command in ("train", "predict", "datasets", "models"):
        assert f"kergnn {command}" in out
    assert main(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--data-mirror" in out
    described = re.sub(r"\W", "", out)  # lines are broken within names
    assert [recipe for recipe in RECIPES if recipe.replace("-", "") not in described] == []


def test_datasets_and_models_say_what_there_is(capsys):
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    assert "MUTAG" in out
    assert "grakel" in out
    assert main(["datasets", "MUTAG"]) == 0
    out = capsys.readouterr().out
    assert "-1: 63, 1: 125" in out
    assert main(["models", "gat"]) == 0
    assert "heads = " in capsys.readouterr().out
    assert main(["models"]) == 0
    assert "rw-step" in capsys.readouterr().out


def start(tmp_path, *arguments):
    """Start a command in a process of its own that saves a checkpoint after every epoch."""
    # What a shell starts in the background ignores interrupts; a user's command does not.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import kergnn.runs as runs; runs._CHECKPOINT_SECONDS = 0; "
        "from kergnn.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_epochs(path, count, process):
    """Wait until the run has recorded ``count`` epochs."""
    while process.poll() is None:
        if path.is_file() and len(path.read_text().splitlines()) > count:
            return
        time.sleep(0.01)
    raise AssertionError(f"ended before epoch {count}: {process.stderr.read()}")


def outcome(run):
    results = json.loads((run / "results.json").read_text())
    history = list(csv.DictReader((run / "metrics.csv").read_text().splitlines()))
    return {
        "weights": (run / "model.safetensors").read_bytes(),
        "predictions": (run / "predictions.csv").read_text(),
        "results": {k: v for k, v in results.items() if not k.startswith("seconds")},
        "history": [{k: v for k, v in row.items() if k != "seconds"} for row in history],
    }


def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(tmp_path):
    options = ["MUTAG", "--hidden", "8", "--epochs", "14", "--set", "patience=14", "--no-report"]
    with start(tmp_path, "train", *options, "--out", "whole") as process:
        assert process.wait() == 0

    process = start(tmp_path, "train", *options, "--out", "killed")
    for epochs in (3, 8):
        wait_for_epochs(tmp_path / "killed" / "metrics.csv", epochs, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        assert not (tmp_path / "killed" / "results.json").exists()
        process = start(tmp_path, "train", "--resume", "killed", "--no-report")
    assert process.wait() == 0, process.stderr.read()
    process.stderr.close()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    assert not list((tmp_path / "killed").glob(".*"))


def test_a_run_does_not_go_on_with_something_else(capsys, tmp_path):
    """Other data, another split and other settings are refused, with or without a checkpoint."""
    write_graphs(tmp_path / "mine.jsonl")
    assert main(["train", "mine.jsonl", *SMALL, "--quiet", "--out", "run"]) == 0
    capsys.readouterr()
    (tmp_path / "run" / "results.json").unlink()
    (tmp_path / "run" / ".config.toml.k1ll3d").write_text("half")
    config = (tmp_path / "run" / "config.toml").read_text()

    write_graphs(tmp_path / "mine.jsonl", count=31)
    assert "mine.jsonl: not the data that the run" in error_of(capsys, "train", "--resume", "run")
    write_graphs(tmp_path / "mine.jsonl")
    for change in ("fold = 3", "seed = 7"):
        key = change.split()[0]
        (tmp_path / "run" / "config.toml").write_text(config.replace(f"{key} = 0", change))
        assert "that the run in run was started with" in error_of(
            capsys, "train", "--resume", "run"
        )
    (tmp_path / "run" / "config.toml").write_text(config)
    assert main(["train", "--resume", "run", "--quiet"]) == 0
    assert not list((tmp_path / "run").glob(".*"))


def test_the_parts_of_a_split_go_where_they_belong(tmp_path, monkeypatch):
    """The trainer sees training and validation part only, and features are fitted to training."""
    given = {}

    class Spy(runs.Trainer):
        def __init__(self, config, model, graphs, batches, train, validation):
            given.update(graphs=graphs, train=train, validation=validation)
            super().__init__(config, model, graphs, batches, train, validation)

    fit = Features.fit.__func__

    def spying_fit(cls, recipe, graphs, nodes):
        given["nodes"] = nodes
        return fit(cls, recipe, graphs, nodes)

    monkeypatch.setattr(preparation, "Trainer", Spy)
    monkeypatch.setattr(Features, "fit", classmethod(spying_fit))
    assert main(["train", *SMALL, "--fold", "2", "--quiet", "--out", "run"]) == 0
    graphs = load_graphs("MUTAG")
    split = get_split(graphs, 2)
    kept = torch.cat([split.train, split.validation]).sort().values
    assert torch.equal(given["graphs"].y, graphs.y[kept])
    assert torch.equal(given["graphs"].labels, graphs.labels[torch.isin(graphs.graph_of, kept)])
    assert torch.equal(kept[given["train"]], split.train)
    assert torch.equal(kept[given["validation"]], split.validation)
    chosen = torch.isin(given["graphs"].graph_of, given["train"]).nonzero()[:, 0]
    assert torch.equal(given["nodes"], chosen)


def test_the_model_of_the_selected_epoch_is_tested_and_kept(tmp_path, monkeypatch):
    """Later epochs count as worse here: the weights of the first remain and predict."""
    record = runs.Trainer._record

    def worse_and_worse(self, row):
        record(self, {**row, "validation_accuracy": 1 / row["epoch"]})

    monkeypatch.setattr(runs.Trainer, "_record", worse_and_worse)
    assert main(["train", *SMALL, "--quiet", "--out", "long"]) == 0
    assert main(["train", *SMALL, "--epochs", "1", "--quiet", "--out", "short"]) == 0
    for name in ("model.safetensors", "predictions.csv"):
        assert (tmp_path / "long" / name).read_bytes() == (tmp_path / "short" / name).read_bytes()


def test_prediction_uses_the_ego_graphs_of_the_run(tmp_path, monkeypatch):
    options = ["--hops", "2", "--max-nodes", "7", "--quiet", "--out", "run"]
    assert main(["train", *SMALL, *options]) == 0
    asked = []
    original = preparation.cached_ego_graphs

    def spy(graphs, num_hops, max_nodes, progress):
        asked.append((num_hops, max_nodes))
        return original(graphs, num_hops, max_nodes, progress)

    monkeypatch.setattr(preparation, "cached_ego_graphs", spy)
    assert main(["predict", "run", "MUTAG", "--out", "p.csv"]) == 0
    assert asked == [(2, 7)]


def test_names_with_brackets_are_shown_as_they_are(capsys, tmp_path):
    write_graphs(tmp_path / "mine.jsonl", label=None)
    lines = (tmp_path / "mine.jsonl").read_text().splitlines()
    records = [{**json.loads(line), "label": f"[/c{i % 2}]"} for i, line in enumerate(lines)]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert main(["datasets", "mine.jsonl"]) == 0
    assert "[/c0]: 15, [/c1]: 15" in capsys.readouterr().out
    assert main(["train", "mine.jsonl", *SMALL, "--out", "out[/a]"]) == 0
    assert "out[/a]" in capsys.readouterr().out


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    process = start(tmp_path, "train", "--hidden", "8", "--epochs", "500", "--out", "run")
    wait_for_epochs(tmp_path / "run" / "metrics.csv", 2, process)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.read().splitlines() == [
        "kergnn: interrupted; kergnn train --resume run goes on"
    ]
    process.stderr.close()


def threads_of_epochs(monkeypatch):
    """Return a list to which every epoch adds the number of its threads."""
    seen, epoch = [], runs.Trainer._epoch
    monkeypatch.setattr(
        runs.Trainer, "_epoch", lambda *a: (seen.append(torch.get_num_threads()), epoch(*a))[1]
    )
    return seen


def test_a_run_has_one_thread_or_as_many_as_asked(monkeypatch, tmp_path):
    seen = threads_of_epochs(monkeypatch)
    torch.set_num_threads(2)
    try:
        assert main(["train", "MUTAG", *SMALL, "--out", "one"]) == 0
        assert main(["train", "MUTAG", *SMALL, "--threads", "3", "--out", "three"]) == 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert seen == [1] * 3 + [3] * 3
    used, features = set(), KerGNN.node_features
    monkeypatch.setattr(
        KerGNN, "node_features", lambda *a: (used.add(torch.get_num_threads()), features(*a))[1]
    )
    assert main(["predict", "three", "MUTAG", "--out", "classes.csv"]) == 0
    assert main(["explain", "three", "--graphs", "0"]) == 0
    assert used == {3}
    stored = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "three")]
    assert [record["threads"] for record in stored] == [1, 3]


def test_a_run_goes_on_with_the_threads_it_had(monkeypatch, capsys, tmp_path):
    assert main(["train", "MUTAG", *SMALL, "--threads", "2", "--out", "run"]) == 0
    (tmp_path / "run" / "results.json").unlink()
    capsys.readouterr()
    assert "threads is fixed" in error_of(capsys, "train", "--resume", "run", "--threads", "1")
    seen = threads_of_epochs(monkeypatch)
    assert main(["train", "--resume", "run", "--no-report"]) == 0
    assert seen == [2] * 3
    assert json.loads((tmp_path / "run" / "run.json").read_text())["threads"] == 2
