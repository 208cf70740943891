"""The benchmark measures what it says; how fast anything is, is never asserted."""

import json

import pytest
import torch

from kergnn.bench import contenders, format_tables, plot, run_bench
from kergnn.bench.fresh import epoch_memory, startup_seconds
from kergnn.bench.padded import pad, padded_random_walk
from kergnn.bench.report import slope
from kergnn.bench.run import take_turns
from kergnn.cli import main
from kergnn.config import ConfigError
from kergnn.data import load_graphs
from kergnn.egographs import EgoGraphs
from kergnn.kernels import random_walk
from kergnn.testing import random_filters, random_graph


def test_the_padded_formulation_is_the_same_kernel():
    x, edge_index = random_graph(12, 0.4, seed=0)
    ego = EgoGraphs.from_edge_index(edge_index, 12, max_nodes=10)
    filters = [t.float() for t in random_filters(3, 4)]
    got = padded_random_walk(x.float(), *pad(ego, 10), *filters, 3)
    torch.testing.assert_close(got, random_walk(x.float(), ego, *filters, 3), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*contenders.epoch_names(2), "rwgnn"])
def test_every_contender_sees_every_graph_once_and_learns(name, monkeypatch):
    graphs, losses, seen = load_graphs("MUTAG"), [], []
    step = contenders._step

    def spy(optimizer, logits, y):
        losses.append(torch.nn.functional.cross_entropy(logits, y).item())
        seen.append(len(y))
        step(optimizer, logits, y)

    monkeypatch.setattr(contenders, "_step", spy)
    epoch = contenders.make_epoch(name, 2, graphs)
    for _ in range(8):
        epoch()
    assert seen[:3] == [64, 64, 60]
    assert sum(losses[-3:]) < sum(losses[:3])


def test_turns_alternate_and_the_first_is_not_counted():
    order = []
    epochs = {name: lambda name=name: order.append(name) for name in "ab"}
    times = take_turns(epochs, repeats=2)
    assert order == ["a", "b"] * 3
    assert [len(t) for t in times.values()] == [2, 2]


def test_slope_of_a_power_law():
    points = [{"value": v, "seconds": 3 * v**1.5} for v in (10, 100, 1000)]
    assert slope(points) == pytest.approx(1.5)


def test_memory_is_measured_in_a_process_of_its_own():
    small, large = (epoch_memory({"num_nodes": n}) for n in (1_000, 20_000))
    assert 0 < small < large < 1e9


def test_the_first_pass_compiles_and_the_second_does_not():
    found = startup_seconds("rw-step")
    assert found["warm_seconds"] < found["compiling_seconds"]


def test_an_interrupted_bench_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("kergnn.bench.run.sweep_points", lambda quick: [])
    saved = []
    first = run_bench(["MUTAG"], [1], 1, quick=True, save=lambda r: saved.append(dict(r)))
    assert saved[-1]["datasets"] == first["datasets"]

    def refuse(*_):
        pytest.fail("measured again")

    monkeypatch.setattr("kergnn.bench.run.make_epoch", refuse)
    assert run_bench(["MUTAG"], [1], 1, quick=True, before=first) == first
    with pytest.raises(ConfigError, match="other settings"):
        run_bench(["MUTAG"], [1], 2, quick=True, before=first)


def test_the_memory_of_every_contender_is_measured_once(monkeypatch):
    monkeypatch.setattr("kergnn.bench.run.sweep_points", lambda quick: [])
    monkeypatch.setattr("kergnn.bench.run.startup_seconds", lambda kernel: {})
    record, asked = run_bench(["MUTAG"], [1], 1, quick=True), []

    def memory(request):
        asked.append(request["name"])
        return 1000 * len(asked)

    monkeypatch.setattr("kergnn.bench.run.epoch_memory", memory)
    for _ in range(2):
        record = run_bench(["MUTAG"], [1], 1, before=record)
    assert asked == contenders.epoch_names(1)
    found = record["datasets"]["MUTAG"]["epoch"]["1"]
    assert [f["peak_bytes"] for f in found.values()] == [1000, 2000, 3000, 4000, 5000]
    titles = [table.title for table in format_tables({**record, "startup": {}})]
    assert sum("memory" in title for title in titles) == 1


def test_the_command_leaves_a_record_and_a_plot(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("kergnn.bench.run.sweep_points", lambda quick: [])
    out = tmp_path / "bench"
    assert main(["bench", "--quick", "--layers", "1", "--out", str(out)]) == 0
    record = json.loads((out / "bench.json").read_text())
    contenders_ = record["datasets"]["MUTAG"]["epoch"]["1"]
    assert contenders_["GIN"]["ratio_to_gin"] == 1
    assert contenders_["KerGNN"]["median_seconds"] > 0
    assert record["datasets"]["MUTAG"]["layer"]["padded"]["ratio_to_padded"] == 1
    assert (out / "bench.svg").read_text().startswith("<?xml")
    assert "MUTAG" in capsys.readouterr().out
    assert len(format_tables(record)) == 2
    assert plot(record).startswith(b"<?xml")


def test_unknown_sets_are_named(capsys):
    assert main(["bench", "--datasets", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl: no such file" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no such file"):
        run_bench(["nowhere.jsonl"])


def test_further_models_are_timed_by_name(capsys, tmp_path):
    options = ["--quick", "--layers", "1", "--models", "structure-free", "--models", "wl"]
    assert main(["bench", *options, "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "bench.json").read_text())
    times = record["datasets"]["MUTAG"]["epoch"]["1"]
    assert times["wl"]["median_seconds"] > 0
    assert times["structure-free"]["ratio_to_gin"] > 0
    assert "structure-free" in capsys.readouterr().out
    assert main(["bench", "--models", "gcnii"]) == 2
    assert "gcnii" in capsys.readouterr().err
