"""Peak memory of one training epoch, in a process of its own.

``python -m kergnn.bench.memory '{"dataset": "NCI1", "name": "GIN", "num_layers": 2}'`` prints the
peak resident memory of the epoch in bytes, less what the libraries and the compiled code take.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from kergnn.bench.contenders import make_epoch
from kergnn.bench.scaling import make_node_epoch
from kergnn.data import GraphSet, load_graphs


def peak_memory(request: dict[str, Any]) -> int:
    """Start the process and return the bytes it reports; 0 where the system does not tell."""
    command = [sys.executable, "-W", "ignore", "-m", "kergnn.bench.memory", json.dumps(request)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"memory of {request}: {result.stderr.strip().splitlines()[-1:]}")
    return int(result.stdout)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def _settle() -> int:
    """Give freed memory back, forget the peak so far, and return what is resident."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _tiny() -> GraphSet:
    triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    edge_index = torch.cat([triangle, triangle + 3], dim=1)
    return GraphSet(
        "tiny", "graph", torch.tensor([3, 3]), edge_index, torch.tensor([0, 1]), ("a", "b")
    )


def _main(request: dict[str, Any]) -> int:
    if not Path("/proc/self/clear_refs").exists():
        return 0
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
    return _status("VmHWM") - before


if __name__ == "__main__":
    print(_main(json.loads(sys.argv[1])))
