"""Finding a data set by name or path: mirror, local cache, official download, or one's own files.

Named sets are looked for in this order: the mirror directory (``KERGNN_DATASETS`` or
``--data-mirror``), the local cache, the official download, which then stays in the cache. MUTAG
comes inside the ``grakel`` package, so that it is always there.

The archives are read by :mod:`kergnn.data.tu`, not by PyG's ``TUDataset``: the same strict reader
as for a user's own folder, which keeps the original names of the classes and unpickles nothing.
"""

from __future__ import annotations

import http.client
import io
import os
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from torch_geometric.datasets import Planetoid, TUDataset

from kergnn._hints import did_you_mean
from kergnn.data.graphset import DataError, GraphSet, Task
from kergnn.data.jsonl import read_jsonl
from kergnn.data.motifs import ba_2motifs, hexagons, planted
from kergnn.data.planetoid import PARTS, read_planetoid
from kergnn.data.store import cache_dir, write_atomic
from kergnn.data.tu import read_tu_archive, read_tu_folder

_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master/new_data/chameleon"


@dataclass(frozen=True)
class Entry:
    """A named data set.

    Args:
        name: its usual name.
        task: whether graphs or nodes are classified.
        about: one line on what it is.
    """

    name: str
    task: Task
    about: str


CATALOG = {
    entry.name: entry
    for entry in (
        Entry("MUTAG", "graph", "188 molecules, mutagenic or not (inside the grakel package)"),
        Entry("DD", "graph", "1,178 protein structures, enzymes or not"),
        Entry("NCI1", "graph", "4,110 molecules, active against lung cancer cells or not"),
        Entry("PROTEINS", "graph", "1,113 proteins, enzymes or not"),
        Entry("ENZYMES", "graph", "600 enzymes of 6 classes"),
        Entry("IMDB-BINARY", "graph", "1,000 collaborations of actors, action or romance"),
        Entry("IMDB-MULTI", "graph", "1,500 collaborations of actors, 3 genres"),
        Entry("REDDIT-BINARY", "graph", "2,000 discussion threads of 2 kinds"),
        Entry("COLLAB", "graph", "5,000 collaborations of scientists, 3 fields"),
        Entry("Mutagenicity", "graph", "4,337 molecules, mutagenic or not"),
        Entry("PROTEINS_full", "graph", "PROTEINS with 29 attributes"),
        Entry("Cora", "node", "2,708 papers of 7 topics, citations"),
        Entry("Citeseer", "node", "3,327 papers of 6 topics, citations"),
        Entry("Pubmed", "node", "19,717 papers of 3 topics, citations"),
        Entry("Chameleon", "node", "2,277 Wikipedia pages of 5 levels of traffic, links"),
        Entry("Chameleon-filtered", "node", "Chameleon without its duplicated pages"),
        Entry("BA-2Motifs", "graph", "1,000 random graphs with a house or a five-cycle"),
        Entry("Planted-ring6", "graph", "400 random graphs, half of them with a ring of six"),
        Entry("Planted-star", "graph", "400 random graphs, half of them with a star of six"),
        Entry("Planted-clique", "graph", "400 random graphs, half of them with a clique of five"),
        Entry("Planted-house", "graph", "400 random graphs, half of them with a house"),
        Entry("Hexagons", "graph", "200 graphs of hexagons or of pairs of triangles"),
    )
}


def mirror_dir(mirror: Path | None = None) -> Path | None:
    """Return the mirror directory: the argument, or what ``KERGNN_DATASETS`` names."""
    if mirror is None and os.environ.get("KERGNN_DATASETS"):
        mirror = Path(os.environ["KERGNN_DATASETS"])
    if mirror is not None and not mirror.is_dir():
        raise DataError(f"{mirror}: the mirror directory does not exist")
    return mirror


def load_graphs(name_or_path: str, mirror: Path | None = None) -> GraphSet:
    """Load a data set by its name, or from a TU folder or a JSON-lines file.

    Args:
        name_or_path: a name of the catalogue, of any other TU set, or a path.
        mirror: directory with copies of the public sets.
    """
    path = Path(name_or_path)
    if path.is_dir():
        return read_tu_folder(path)
    if path.is_file():
        return read_jsonl(path)
    if len(path.parts) > 1 or path.suffix or name_or_path.endswith(("/", os.sep)):
        raise DataError(f"{path}: no such file or folder")
    name = {known.lower(): known for known in CATALOG}.get(name_or_path.lower(), name_or_path)
    mirror = mirror_dir(mirror)
    if name in _GENERATORS:
        return _GENERATORS[name]()
    entry = CATALOG.get(name)
    if entry is not None and entry.task == "node":
        return _NODE_LOADERS[name](name, mirror)
    return _load_tu(name, mirror)


def where_available(name: str, mirror: Path | None = None) -> str:
    """Return in a word where a set would come from: generated, grakel, mirror, cache, download."""
    if name in _GENERATORS:
        return "generated"
    mirror = mirror_dir(mirror)
    entry = CATALOG[name]
    if entry.task == "graph":
        if mirror is not None and (mirror / "tu" / f"{name}.zip").is_file():
            return "mirror"
        if name == "MUTAG":
            return "grakel"
        return "cache" if (cache_dir() / "tu" / f"{name}.zip").is_file() else "download"
    folder, example = {
        "Chameleon": ("wikipedia/chameleon", "out1_graph_edges.txt"),
        "Chameleon-filtered": ("wikipedia", "chameleon_filtered.npz"),
    }.get(name, ("planetoid", f"ind.{name.lower()}.graph"))
    for place, root in (("mirror", mirror), ("cache", cache_dir())):
        if root is not None and (root / folder / example).is_file():
            return place
    return "mirror only" if name == "Chameleon-filtered" else "download"


def _load_tu(name: str, mirror: Path | None) -> GraphSet:
    archive = mirror / "tu" / f"{name}.zip" if mirror is not None else None
    if archive is not None and archive.is_file():
        return read_tu_archive(archive, name)
    if name == "MUTAG":
        return replace(
            read_tu_folder(Path(str(files("grakel") / "tests" / "data" / "MUTAG"))),
            source="the grakel package",
        )
    cached = cache_dir() / "tu" / f"{name}.zip"
    if not cached.is_file():
        looked = [str(archive)] if archive is not None else []
        _download(f"{TUDataset.url}/{name}.zip", cached, name, looked)
    return read_tu_archive(cached, name)


def _find(files_needed: list[str], folder: str, url: str, name: str, mirror: Path | None) -> Path:
    """Return the folder that holds all files: mirror, cache, or cache after a download."""
    looked = []
    for root in (mirror, cache_dir()):
        if root is not None:
            if all((root / folder / f).is_file() for f in files_needed):
                return root / folder
            looked.append(str(root / folder))
    target = cache_dir() / folder
    for f in files_needed:
        _download(f"{url}/{f}", target / f, name, looked[:1] if mirror is not None else [])
    return target


def _download(url: str, target: Path, name: str, looked: list[str]) -> None:
    try:
        with urllib.request.urlopen(urllib.parse.quote(url, safe=":/"), timeout=60) as response:
            content = response.read()
        if target.suffix == ".zip" and not zipfile.is_zipfile(io.BytesIO(content)):
            raise ValueError("what came was not a zip archive")
        write_atomic(target, content)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        places = ", ".join([*looked, str(target), url])
        hint = "" if name in CATALOG else did_you_mean(name, CATALOG)
        raise DataError(
            f"data set {name} is not available{hint}. Looked for {places} ({reason}). Provide it "
            f"in a mirror directory (--data-mirror or KERGNN_DATASETS) as "
            f"{target.parent.name}/{target.name}"
        ) from None


def _load_planetoid(name: str, mirror: Path | None) -> GraphSet:
    needed = [f"ind.{name.lower()}.{part}" for part in PARTS]
    raw = _find(needed, "planetoid", Planetoid.url, name, mirror)
    return _one_graph(name, *read_planetoid(raw, name), str(raw))


def _load_chameleon(name: str, mirror: Path | None) -> GraphSet:
    needed = ["out1_node_feature_label.txt", "out1_graph_edges.txt"]
    raw = _find(needed, "wikipedia/chameleon", _GEOM_GCN, name, mirror)
    try:
        rows = [line.split("\t") for line in (raw / needed[0]).read_text().splitlines()[1:]]
        rows.sort(key=lambda row: int(row[0]))
        x = torch.from_numpy(np.array([row[1].split(",") for row in rows]).astype(np.float32))
        y = torch.tensor([int(row[2]) for row in rows])
        edges = np.loadtxt(raw / needed[1], dtype=np.int64, delimiter="\t", skiprows=1)
    except (ValueError, IndexError) as error:
        raise DataError(f"{raw}: cannot be read as {name} ({error})") from error
    return _one_graph(name, torch.from_numpy(edges.T.copy()), x, y, str(raw))


def _load_chameleon_filtered(name: str, mirror: Path | None) -> GraphSet:
    path = None if mirror is None else mirror / "wikipedia" / "chameleon_filtered.npz"
    if path is None or not path.is_file():
        raise DataError(
            f"data set {name} is not available: looked for {path or 'a mirror directory'}. Provide "
            "it in a mirror directory (--data-mirror or KERGNN_DATASETS) as "
            "wikipedia/chameleon_filtered.npz"
        )
    try:
        record = dict(np.load(path, allow_pickle=False))
        x = torch.from_numpy(record["node_features"].astype(np.float32))
        y = torch.from_numpy(record["node_labels"].astype(np.int64))
        edges = torch.from_numpy(record["edges"].astype(np.int64))
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read as {name} ({type(error).__name__})") from None
    edge_index = edges if edges.size(0) == 2 else edges.T.contiguous()
    return _one_graph(name, edge_index, x, y, str(path))


def _one_graph(
    name: str, edge_index: torch.Tensor, x: torch.Tensor, y: torch.Tensor, source: str
) -> GraphSet:
    return GraphSet(
        name=name,
        task="node",
        size=torch.tensor([x.size(0)]),
        edge_index=edge_index,
        y=y,
        class_names=tuple(str(c) for c in range(int(y.max()) + 1)),
        attributes=x.double(),
        source=source,
    )


_NODE_LOADERS: dict[str, Callable[[str, Path | None], GraphSet]] = {
    "Cora": _load_planetoid,
    "Citeseer": _load_planetoid,
    "Pubmed": _load_planetoid,
    "Chameleon": _load_chameleon,
    "Chameleon-filtered": _load_chameleon_filtered,
}

_GENERATORS: dict[str, Callable[[], GraphSet]] = {
    "BA-2Motifs": ba_2motifs,
    "Planted-ring6": lambda: planted("ring6"),
    "Planted-star": lambda: planted("star"),
    "Planted-clique": lambda: planted("clique"),
    "Planted-house": lambda: planted("house"),
    "Hexagons": hexagons,
}
