"""The measurement: contenders take turns, so that whatever disturbs one disturbs all."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from kergnn._checks import check_integer
from kergnn._hints import counted
from kergnn.bench.contenders import (
    BATCH_SIZE,
    FILTER_SIZE,
    HIDDEN,
    MAX_NODES,
    NUM_HOPS,
    NUM_STEPS,
    Epoch,
    epoch_names,
    make_epoch,
    make_layers,
)
from kergnn.bench.fresh import epoch_memory, startup_seconds
from kergnn.bench.scaling import make_node_epoch, sweep_points
from kergnn.config import ConfigError
from kergnn.data import GraphSet, load_graphs
from kergnn.egographs import EgoGraphs
from kergnn.versions import processor

# A contender that is slower than this is measured once: it shows what it shows.
_SLOW_SECONDS = 20.0


def run_bench(
    datasets: Sequence[str],
    layers: Sequence[int] = (1, 2, 3),
    repeats: int = 5,
    mirror: Path | None = None,
    quick: bool = False,
    models: Sequence[str] = (),
    progress: Callable[[str], None] = lambda text: None,
    before: dict[str, Any] | None = None,
    save: Callable[[dict[str, Any]], None] = lambda record: None,
) -> dict[str, Any]:
    """Measure everything and return the record that is stored.

    Args:
        datasets: names of graph sets.
        layers: depths of the models.
        repeats: rounds in which each contender takes one turn, after one to warm up.
        mirror: directory with copies of the public sets.
        quick: leave out memory, compilation and the larger points of the sweeps.
        models: further models by name; kernels are timed with their machine, once for all depths.
        progress: called with what is measured next.
        before: an earlier record with the same settings; what it has is not measured again.
        save: called with the record so far, after each part.
    """
    for num_layers in layers:
        check_integer("layers", num_layers, minimum=1)
    record: dict[str, Any] = {
        "settings": {
            "hidden": HIDDEN,
            "filter_size": FILTER_SIZE,
            "num_steps": NUM_STEPS,
            "num_hops": NUM_HOPS,
            "max_nodes": MAX_NODES,
            "batch_size": BATCH_SIZE,
            "repeats": repeats,
            "threads": torch.get_num_threads(),
        },
        "machine": {
            "processor": processor(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "datasets": {},
        "scaling": [],
    }
    if before is not None:
        for key in ("settings", "machine"):
            if before.get(key) != record[key]:
                raise ConfigError(f"the earlier record has other {key}: {before.get(key)}")
        record = {**record, **before}
    for dataset in datasets:
        if dataset in record["datasets"]:
            continue
        progress(f"{dataset}: reading")
        graphs = load_graphs(dataset, mirror)
        if graphs.task != "graph":
            raise ConfigError(f"datasets is {dataset!r}: bench times sets of graphs")
        entry: dict[str, Any] = {
            "graphs": graphs.num_graphs,
            "nodes": graphs.num_nodes,
            "ego_index_seconds": _ego_seconds(graphs),
            "epoch": {},
        }
        for num_layers in layers:
            progress(f"{dataset}: epochs of {counted(num_layers, 'layer')}")
            names = [*epoch_names(num_layers), *models]
            epochs = {name: make_epoch(name, num_layers, graphs) for name in names}
            times = take_turns(epochs, repeats)
            del epochs
            entry["epoch"][str(num_layers)] = _summary(times, base="GIN")
        if _layer_fits(graphs):
            progress(f"{dataset}: one layer")
            entry["layer"] = _summary(take_turns(make_layers(graphs), repeats), base="padded")
        record["datasets"][dataset] = entry
        save(record)
    for dataset, depth, name in [] if quick else _without_memory(record, datasets):
        progress(f"{dataset}: memory of {name}-{depth}")
        request = {"dataset": dataset, "name": name, "num_layers": int(depth)}
        bytes_ = epoch_memory({**request, "mirror": str(mirror) if mirror else None})
        record["datasets"][dataset]["epoch"][depth][name]["peak_bytes"] = bytes_
        save(record)
    if "startup" not in record and not quick:
        progress("first passes")
        record["startup"] = {k: startup_seconds(k) for k in ("rw", "rw-step", "drw", "gcn")}
        save(record)
    for name, value, arguments in sweep_points(quick):
        if any((p["sweep"], p["value"]) == (name, value) for p in record["scaling"]):
            continue
        progress(f"scaling: {name} = {value}")
        times = take_turns({"step": make_node_epoch(**arguments)}, min(repeats, 3))
        point = {"sweep": name, "value": value, "seconds": min(times["step"])}
        if name == "num_nodes" and value >= 1_000_000:
            point["peak_bytes"] = epoch_memory(arguments)
        record["scaling"].append(point)
        save(record)
    return record


def _without_memory(record: dict[str, Any], datasets: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the set, depth and name of all contenders whose memory is not known yet."""
    return [
        (dataset, depth, name)
        for dataset in datasets
        for depth, contenders in record["datasets"][dataset]["epoch"].items()
        for name, found in contenders.items()
        if "peak_bytes" not in found
    ]


def take_turns(epochs: dict[str, Epoch], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each round; one round to warm up is not counted."""
    times: dict[str, list[float]] = {name: [] for name in epochs}
    slow: set[str] = set()
    for turn in range(repeats + 1):
        for name, epoch in epochs.items():
            if name in slow:
                continue
            start = time.perf_counter()
            epoch()
            seconds = time.perf_counter() - start
            if turn:
                times[name].append(seconds)
                if seconds > _SLOW_SECONDS:
                    slow.add(name)
    return times


def _summary(times: dict[str, list[float]], base: str) -> dict[str, Any]:
    """Return medians, minima and the ratio to the base: the median of the rounds' ratios."""
    summary = {}
    for name, seconds in times.items():
        rounds = zip(seconds, times[base], strict=False)
        summary[name] = {
            "median_seconds": statistics.median(seconds),
            "min_seconds": min(seconds),
            f"ratio_to_{base.lower()}": statistics.median(s / b for s, b in rounds),
        }
    return summary


def _ego_seconds(graphs: GraphSet) -> float:
    """Return the seconds to build the ego-graphs, compiled code being there."""
    EgoGraphs.from_edge_index(torch.tensor([[0], [1]]), 2, NUM_HOPS, MAX_NODES)
    start = time.perf_counter()
    EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes, NUM_HOPS, MAX_NODES)
    return time.perf_counter() - start


def _layer_fits(graphs: GraphSet) -> bool:
    """Say whether the padded ego-graphs of all batches fit into 4 GB."""
    floats = graphs.num_nodes * (MAX_NODES * MAX_NODES + 3 * MAX_NODES)
    return floats * 4 < 4e9
