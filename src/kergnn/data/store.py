"""Files of tensors that are either whole or not there, and the caches made of them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import platformdirs
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from kergnn.data.graphset import DataError, GraphSet
from kergnn.egographs import EgoGraphs

_NODES_PER_BLOCK = 50_000
# To be raised when the rules by which ego-graphs are built change.
_EGO_FORMAT = 1


def cache_dir() -> Path:
    """Return the folder of the local cache; ``KERGNN_CACHE`` names another one."""
    return Path(os.environ.get("KERGNN_CACHE") or platformdirs.user_cache_dir("kergnn"))


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, sees the old one or the new one."""
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], record: Any = None) -> None:
    """Write tensors and a JSON record into one safetensors file, with a checksum."""
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    text = json.dumps(record)
    # One key only: safetensors writes several in an order of its own, and equal content shall make
    # equal files.
    metadata = {"kergnn": json.dumps({"checksum": _checksum(contiguous, text), "record": text})}
    write_atomic(path, save(contiguous, metadata))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Read what :func:`save_tensors` wrote; ``DataError`` where it is not that, or damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get("kergnn", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path}: not a whole safetensors file ({error})") from None
    if metadata.get("checksum") != _checksum(tensors, metadata.get("record", "")):
        raise DataError(f"{path}: damaged, its checksum does not fit its content")
    return tensors, json.loads(metadata["record"])


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tuple(tensors[name].shape)}".encode())
        digest.update(tensors[name].cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def cached_ego_graphs(
    graphs: GraphSet,
    num_hops: int,
    max_nodes: int | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> EgoGraphs:
    """Return the ego-graphs of all graphs, from the cache if they were built before.

    The key is the content of the graphs and the two parameters. A damaged or unwritable cache only
    costs the time to build them again.

    Args:
        graphs: the set.
        num_hops: radius of the ego-graphs.
        max_nodes: largest size of an ego-graph.
        progress: called with the numbers of nodes done and in all.
    """
    key = f"{_topology(graphs)}-hops{num_hops}-max{max_nodes or 'all'}"
    path = cache_dir() / "ego" / f"{key}.safetensors"
    with suppress(DataError, OSError, TypeError):
        tensors, _ = load_tensors(path)
        ego = EgoGraphs(**tensors)
        if ego.num_nodes == graphs.num_nodes:
            return ego
    ego = _build_in_blocks(graphs, num_hops, max_nodes, progress)
    with suppress(OSError):
        save_tensors(path, {f.name: getattr(ego, f.name) for f in fields(ego)})
    return ego


def _topology(graphs: GraphSet) -> str:
    shape = (_EGO_FORMAT, graphs.num_graphs, graphs.edge_index.size(1))
    digest = hashlib.sha256(repr(shape).encode())
    digest.update(graphs.size.numpy().tobytes())
    digest.update(graphs.edge_index.contiguous().numpy().tobytes())
    return digest.hexdigest()[:24]


def _build_in_blocks(
    graphs: GraphSet,
    num_hops: int,
    max_nodes: int | None,
    progress: Callable[[int, int], None],
) -> EgoGraphs:
    """Build block after block of whole graphs, so that progress can be shown."""
    order = graphs.edge_index[0].argsort(stable=True)
    edge_index = graphs.edge_index[:, order]
    blocks, first, total = [], 0, graphs.num_nodes
    progress(0, total)
    while first < total:
        last_graph = int(torch.searchsorted(graphs.ptr, first + _NODES_PER_BLOCK, right=True)) - 1
        graph = int(torch.searchsorted(graphs.ptr, first, right=True)) - 1
        last = int(graphs.ptr[max(last_graph, graph + 1)])
        start, stop = torch.searchsorted(edge_index[0].contiguous(), torch.tensor([first, last]))
        block = edge_index[:, int(start) : int(stop)] - first
        blocks.append(EgoGraphs.from_edge_index(block, last - first, num_hops, max_nodes))
        first = last
        progress(first, total)
    if not blocks:
        return EgoGraphs.from_edge_index(edge_index, 0, num_hops, max_nodes)
    return EgoGraphs.cat(blocks)
