import os
import pickle
from dataclasses import replace

import pytest
import torch

from kergnn import EgoGraphs
from kergnn.data import DataError, GraphSet, cached_ego_graphs
from kergnn.data import store as store_module
from kergnn.data.store import cache_dir, load_tensors, save_tensors, write_atomic


def test_tensors_and_record_come_back(tmp_path):
    tensors = {"a": torch.arange(6).reshape(2, 3).T, "b": torch.tensor(1.5), "c": torch.empty(2, 0)}
    save_tensors(tmp_path / "t.safetensors", tensors, {"epoch": 3, "names": ["ä"]})
    again, record = load_tensors(tmp_path / "t.safetensors")
    assert record == {"epoch": 3, "names": ["ä"]}
    assert all(torch.equal(again[k], tensors[k]) for k in tensors)


@pytest.mark.parametrize("position", [5, 200, -1])
def test_a_flipped_bit_is_found(tmp_path, position):
    path = tmp_path / "t.safetensors"
    save_tensors(path, {"a": torch.arange(100)}, {"epoch": 3})
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"t\.safetensors: (damaged|not a whole safetensors file)"):
        load_tensors(path)


def test_a_short_file_is_found(tmp_path):
    path = tmp_path / "t.safetensors"
    save_tensors(path, {"a": torch.arange(100)})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="not a whole safetensors file"):
        load_tensors(path)


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    path = tmp_path / "t.safetensors"
    for content in (pickle.dumps(Malicious()), None):
        if content is None:
            torch.save({"weights": Malicious()}, path)
        else:
            path.write_bytes(content)
        with pytest.raises(DataError, match="not a whole safetensors file"):
            load_tensors(path)
    assert not (tmp_path / "executed").exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def random_set(num_graphs=40):
    torch.manual_seed(0)
    size = torch.randint(1, 30, (num_graphs,))
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), size.cumsum(0)])
    edges = [torch.randint(0, int(n), (2, 2 * int(n))) + p for n, p in zip(size, ptr, strict=False)]
    order = torch.randperm(sum(e.size(1) for e in edges))
    return GraphSet(
        name="random",
        task="graph",
        size=size,
        edge_index=torch.cat(edges, dim=1)[:, order],
        y=torch.zeros(num_graphs, dtype=torch.long),
        class_names=("a",),
    )


def assert_equal(one, other):
    for name in ("index", "size", "hop", "degree", "neighbor"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("block", [1, 50, 100_000])
def test_blocks_give_the_ego_graphs_of_the_whole(monkeypatch, block):
    monkeypatch.setattr(store_module, "_NODES_PER_BLOCK", block)
    graphs, steps = random_set(), []
    ego = cached_ego_graphs(graphs, 2, 8, lambda done, total: steps.append((done, total)))
    assert_equal(ego, EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes, 2, 8))
    assert steps[-1] == (graphs.num_nodes, graphs.num_nodes)
    assert steps == sorted(set(steps))


def test_ego_graphs_are_built_once_and_read_after_that(monkeypatch):
    graphs = random_set()
    first = cached_ego_graphs(graphs, 1, None)

    def fail(*arguments):
        raise AssertionError("built again")

    monkeypatch.setattr(store_module, "_build_in_blocks", fail)
    assert_equal(cached_ego_graphs(graphs, 1, None), first)
    with pytest.raises(AssertionError, match="built again"):
        cached_ego_graphs(graphs, 1, 5)


def test_a_damaged_cache_is_built_anew():
    graphs = random_set()
    first = cached_ego_graphs(graphs, 1, 10)
    (path,) = (cache_dir() / "ego").iterdir()
    whole = path.read_bytes()
    for content in (b"", whole[:100], whole[:-8] + b"12345678"):
        path.write_bytes(content)
        assert_equal(cached_ego_graphs(graphs, 1, 10), first)
        assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERGNN_CACHE", str(tmp_path / "file"))  # not a directory
    graphs = random_set(3)
    assert cached_ego_graphs(graphs, 1, 10).num_nodes == graphs.num_nodes


def test_sets_of_another_shape_have_another_key():
    """The bytes of sizes and edges, one after the other, are the same for these two sets."""
    one = replace(random_set(1), size=torch.tensor([3]), edge_index=torch.tensor([[0, 1], [1, 2]]))
    other = replace(
        random_set(1), size=torch.tensor([3, 0, 1, 1, 2]), edge_index=torch.zeros(2, 0).long()
    )
    assert cached_ego_graphs(one, 1, None).num_nodes == 3
    assert cached_ego_graphs(other, 1, None).num_nodes == 7
    assert cached_ego_graphs(one, 2, None).size.tolist() == [3, 3, 3]
