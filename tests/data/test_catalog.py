import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.datasets import TUDataset

from kergnn.data import DataError, load_graphs, where_available

SHARED = Path(__file__).parents[3] / "shared" / "datasets"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr(TUDataset, "url", "file:///nowhere")


def make_archive(path, name):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for suffix, text in {
            "A": "1, 2\n",
            "graph_indicator": "1\n1\n2\n",
            "graph_labels": "0\n1\n",
        }.items():
            archive.writestr(f"{name}/{name}_{suffix}.txt", text)


def test_mutag_is_always_there():
    graphs = load_graphs("MUTAG")
    assert (graphs.num_graphs, graphs.num_nodes, graphs.num_classes) == (188, 3371, 2)
    assert graphs.y.bincount().tolist() == [63, 125]
    assert graphs.source == "the grakel package"
    assert where_available("MUTAG") == "grakel"
    assert load_graphs("mutag").fingerprint == graphs.fingerprint


def test_places_are_tried_in_order(tmp_path, monkeypatch):
    mirror = tmp_path / "mirror"
    make_archive(mirror / "tu" / "TOY.zip", "TOY")
    make_archive(tmp_path / "cache" / "tu" / "TOY.zip", "TOY")
    assert load_graphs("TOY", mirror).source.startswith(str(mirror))
    monkeypatch.setenv("KERGNN_DATASETS", str(mirror))
    assert load_graphs("TOY").source.startswith(str(mirror))
    monkeypatch.delenv("KERGNN_DATASETS")
    assert load_graphs("TOY").source.startswith(str(tmp_path / "cache"))
    make_archive(tmp_path / "web" / "NEW.zip", "NEW")
    monkeypatch.setattr(TUDataset, "url", (tmp_path / "web").as_uri())
    assert load_graphs("NEW").source == str(tmp_path / "cache" / "tu" / "NEW.zip")
    (tmp_path / "web" / "NEW.zip").unlink()
    assert load_graphs("NEW").num_graphs == 2  # from the cache now


def test_a_set_that_is_nowhere_is_told_in_one_line(tmp_path):
    with pytest.raises(DataError) as error:
        load_graphs("NCI", tmp_path)
    message = str(error.value)
    assert "\n" not in message
    assert f"{tmp_path / 'tu' / 'NCI.zip'}" in message
    assert "file:///nowhere/NCI.zip" in message
    assert "(did you mean NCI1?)" in message
    assert "KERGNN_DATASETS" in message


def test_paths_that_are_not_there_are_named(tmp_path):
    with pytest.raises(DataError, match=r"mine\.jsonl: no such file"):
        load_graphs("mine.jsonl")
    with pytest.raises(DataError, match="no such file"):
        load_graphs(str(tmp_path / "folder"))
    with pytest.raises(DataError, match="mirror directory does not exist"):
        load_graphs("NCI1", tmp_path / "mirror")


def test_chameleon_without_duplicates_comes_from_the_mirror(tmp_path):
    with pytest.raises(DataError, match=r"wikipedia/chameleon_filtered\.npz"):
        load_graphs("Chameleon-filtered")
    (tmp_path / "wikipedia").mkdir()
    np.savez(
        tmp_path / "wikipedia" / "chameleon_filtered.npz",
        node_features=np.eye(3),
        node_labels=np.array([0, 1, 1]),
        edges=np.array([[0, 1], [1, 2]]),
    )
    graphs = load_graphs("Chameleon-filtered", tmp_path)
    assert (graphs.task, graphs.num_nodes, graphs.num_classes) == ("node", 3, 2)


def test_chameleon_in_the_format_of_geom_gcn(tmp_path):
    folder = tmp_path / "wikipedia" / "chameleon"
    folder.mkdir(parents=True)
    (folder / "out1_node_feature_label.txt").write_text(
        "node_id\tfeature\tlabel\n1\t0,1\t2\n0\t1,0\t0\n"
    )
    (folder / "out1_graph_edges.txt").write_text("node_id\tnode_id\n0\t1\n1\t0\n")
    graphs = load_graphs("chameleon", tmp_path)
    assert graphs.attributes.tolist() == [[1, 0], [0, 1]]
    assert graphs.y.tolist() == [0, 2]
    assert graphs.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark data are not beside the repository")
@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("MUTAG", (188, 3371, 2)),
        ("ENZYMES", (600, 19580, 6)),
        ("PROTEINS", (1113, 43471, 2)),
        ("Cora", (1, 2708, 7)),
        ("Chameleon", (1, 2277, 5)),
    ],
)
def test_benchmark_sets_have_the_published_sizes(name, facts):
    graphs = load_graphs(name, SHARED)
    assert (graphs.num_graphs, graphs.num_nodes, graphs.num_classes) == facts
    if name == "MUTAG":
        assert torch.equal(graphs.edge_index, load_graphs("MUTAG").edge_index)


def write_planetoid(folder, payload=None):
    """Five papers of two topics; papers 3 and 5 are the test part, 4 has neither text nor topic."""
    folder.mkdir(parents=True)
    content = {
        "x": sp.csr_matrix(np.eye(2, 3)),
        "tx": sp.csr_matrix([[0.0, 0, 5], [0, 0, 3]]),
        "allx": sp.csr_matrix(np.eye(3)),
        "y": np.eye(2, dtype=int),
        "ty": np.array([[0, 1], [1, 0]]),
        "ally": np.array([[1, 0], [0, 1], [1, 0]]),
        "graph": {0: [1, 5], 1: [0], 5: [0]},
    }
    for part, value in content.items():
        value = payload if payload is not None and part == "graph" else value
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value))
    (folder / "ind.cora.test.index").write_text("5\n3\n")


def test_planetoid_files_are_put_in_order(tmp_path):
    write_planetoid(tmp_path / "planetoid")
    graphs = load_graphs("Cora", tmp_path)
    assert graphs.y.tolist() == [0, 1, 0, 0, -1, 1]
    assert graphs.attributes[3].tolist() == [0, 0, 3]
    assert graphs.attributes[5].tolist() == [0, 0, 5]
    assert graphs.edge_index.tolist() == [[0, 0, 1, 5], [1, 5, 0, 0]]


def test_a_malicious_planetoid_file_is_refused_and_not_executed(tmp_path):
    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    write_planetoid(tmp_path / "planetoid", Malicious())
    with pytest.raises(DataError, match=r"ind\.cora\.graph: cannot be read \(it asks for posix"):
        load_graphs("Cora", tmp_path)
    assert not (tmp_path / "executed").exists()
