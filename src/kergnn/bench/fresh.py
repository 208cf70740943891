"""What only a fresh process can tell: the peak memory of an epoch, and the time to start.

``python -m kergnn.bench.fresh '{"dataset": "NCI1", "name": "GIN", "num_layers": 2}'`` prints the
peak resident memory of the epoch in bytes, less what the libraries and the compiled code take;
``'{"kernel": "rw"}'`` the seconds of the first forward and backward pass of a layer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from kergnn.bench.contenders import FILTER_SIZE, HIDDEN, NUM_STEPS, make_epoch
from kergnn.bench.scaling import make_node_epoch
from kergnn.data import GraphSet, load_graphs
from kergnn.egographs import EgoGraphs
from kergnn.memory import forget_peak, peak_memory, resident_memory
from kergnn.nn import KerGNNConv


def epoch_memory(request: dict[str, Any]) -> int:
    """Return the peak memory of an epoch in bytes; 0 where the system does not tell."""
    return int(_ask(request, {}))


def startup_seconds(kernel: str) -> dict[str, float]:
    """Return the seconds of a layer's first pass: with nothing compiled yet, and after that."""
    with tempfile.TemporaryDirectory() as empty:
        place = {"NUMBA_CACHE_DIR": empty}
        first, later = (float(_ask({"kernel": kernel}, place)) for _ in range(2))
    return {"compiling_seconds": first, "warm_seconds": later}


def _ask(request: dict[str, Any], environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-m", "kergnn.bench.fresh", json.dumps(request)]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if result.returncode:
        raise RuntimeError(f"{request}: {result.stderr.strip().splitlines()[-1:]}")
    return result.stdout


def _measure_start(kernel: str) -> float:
    edge_index = torch.arange(50).repeat(2, 1)
    edge_index[1] = edge_index[1].roll(1)
    x = torch.randn(50, 8, requires_grad=True)
    start = time.perf_counter()
    ego = EgoGraphs.from_edge_index(edge_index, 50)
    conv = KerGNNConv(8, HIDDEN, FILTER_SIZE, num_steps=NUM_STEPS, kernel=kernel)
    conv(x, ego).sum().backward()
    return time.perf_counter() - start


def _tiny() -> GraphSet:
    triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    edge_index = torch.cat([triangle, triangle + 3], dim=1)
    return GraphSet(
        "tiny", "graph", torch.tensor([3, 3]), edge_index, torch.tensor([0, 1]), ("a", "b")
    )


def _measure_memory(request: dict[str, Any]) -> int:
    if "num_nodes" in request:
        make_node_epoch(**{**request, "num_nodes": 100})()
        before = _settle()
        epoch = make_node_epoch(**request)
    else:
        name, num_layers = request["name"], request["num_layers"]
        make_epoch(name, num_layers, _tiny())()
        before = _settle()
        mirror = Path(request["mirror"]) if request.get("mirror") else None
        epoch = make_epoch(name, num_layers, load_graphs(request["dataset"], mirror))
    _settle()
    epoch()
    return max((peak_memory() or 0) - before, 0)


def _settle() -> int:
    forget_peak()
    return resident_memory() or 0


def _main(request: dict[str, Any]) -> float:
    return _measure_start(request["kernel"]) if "kernel" in request else _measure_memory(request)


if __name__ == "__main__":
    print(_main(json.loads(sys.argv[1])))
