import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from kergnn.data import DataError, GraphSet, get_split
from kergnn.data.splits import draw_split


def graphs_of(y, task="graph"):
    y = torch.tensor(y)
    count = len(y)
    return GraphSet(
        name="Toy",
        task=task,
        size=torch.ones(count, dtype=torch.long) if task == "graph" else torch.tensor([count]),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        y=y,
        class_names=("a", "b", "c"),
    )


def shares(graphs, part):
    return [(graphs.y[part] == c).float().mean().item() for c in range(3)]


@pytest.mark.parametrize("task", ["graph", "node"])
def test_parts_are_disjoint_complete_and_stratified(task):
    graphs = graphs_of([0] * 100 + [1] * 60 + [2] * 40, task)
    for fold in range(10):
        split = get_split(graphs, fold)
        parts = torch.cat([split.train, split.validation, split.test])
        assert torch.equal(parts.sort().values, torch.arange(200))
        sizes = [len(split.train), len(split.validation), len(split.test)]
        assert sizes == ([162, 18, 20] if task == "graph" else [120, 40, 40])
        for part in (split.train, split.validation, split.test):
            assert shares(graphs, part) == pytest.approx([0.5, 0.3, 0.2], abs=0.04)


def test_the_ten_test_parts_of_graphs_cover_each_graph_once():
    graphs = graphs_of([0, 1, 2] * 11)
    tests = torch.cat([get_split(graphs, fold).test for fold in range(10)])
    assert torch.equal(tests.sort().values, torch.arange(33))


def test_splits_are_the_same_every_time_and_differ_from_each_other():
    graphs = graphs_of([0, 1, 2] * 20, "node")
    assert torch.equal(get_split(graphs, 3).train, get_split(graphs, 3).train)
    assert not torch.equal(get_split(graphs, 3).train, get_split(graphs, 4).train)


def test_classes_with_one_member_and_graphs_without_class_are_no_obstacle():
    graphs = graphs_of([0] * 20 + [1] + [-1] * 5)
    split = get_split(graphs, 0)
    parts = torch.cat([split.train, split.validation, split.test])
    assert torch.equal(parts.sort().values, torch.arange(21))
    assert min(len(split.validation), len(split.test)) > 0


def test_published_graph_splits_are_used_where_they_fit(tmp_path):
    (tmp_path / "splits").mkdir()
    record = {"test": [2, 0], "model_selection": [{"train": list(range(3, 12)), "validation": [1]}]}
    (tmp_path / "splits" / "Toy_splits.json").write_text(json.dumps([record] * 10))
    split = get_split(graphs_of([0, 1, 2] * 4), 4, tmp_path)
    assert split.name == "published-4"
    assert split.test.tolist() == [0, 2]
    assert split.validation.tolist() == [1]
    assert get_split(graphs_of([0, 1, 2] * 5), 4, tmp_path).name == "drawn-4"  # not that set
    (tmp_path / "splits" / "Toy_splits.json").write_text("[1]")
    with pytest.raises(DataError, match=r"Toy_splits\.json: not a file of splits"):
        get_split(graphs_of([0, 1, 2] * 4), 0, tmp_path)


def test_published_node_splits_are_used_where_they_fit(tmp_path):
    (tmp_path / "splits").mkdir()
    masks = np.eye(3, dtype=bool).repeat(4, axis=1)
    path = tmp_path / "splits" / "toy_split_0.6_0.2_1.npz"
    np.savez(path, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    split = get_split(graphs_of([0, 1, 2] * 4, "node"), 1, tmp_path)
    assert split.name == "published-1"
    assert split.validation.tolist() == [4, 5, 6, 7]
    assert get_split(graphs_of([0, 1, 2] * 5, "node"), 1, tmp_path).name == "drawn-1"
    np.savez(path, train_mask=masks[0], val_mask=masks[0], test_mask=masks[2])
    overlapping = get_split(graphs_of([0, 1, 2] * 4, "node"), 1, tmp_path)
    assert overlapping.name == "drawn-1"


def test_bad_folds_and_tiny_sets_are_named():
    for draw in (get_split, draw_split):
        with pytest.raises(DataError, match="fold is 10: it must be from 0 to 9"):
            draw(graphs_of([0, 1, 2] * 4), 10)
    with pytest.raises(DataError, match="Toy has one class only"):
        get_split(graphs_of([1] * 20), 0)
    with pytest.raises(DataError, match="Toy has 3 graphs with a class: at least 10"):
        get_split(graphs_of([0, 1, 2]), 0)


def test_a_set_without_splits_of_its_own_takes_those_of_its_full_version(tmp_path):
    (tmp_path / "splits").mkdir()
    record = {"test": [0], "model_selection": [{"train": list(range(2, 12)), "validation": [1]}]}
    (tmp_path / "splits" / "Toy_full_splits.json").write_text(json.dumps([record] * 10))
    assert get_split(graphs_of([0, 1, 2] * 4), 0, tmp_path).test.tolist() == [0]


def test_ten_splits_in_one_file_and_nodes_without_class(tmp_path):
    (tmp_path / "wikipedia").mkdir()
    masks = np.zeros((3, 10, 12), dtype=bool)
    for part in range(3):
        masks[part, 4, 4 * part : 4 * part + 4] = True
    path = tmp_path / "wikipedia" / "chameleon_filtered.npz"
    np.savez(path, train_masks=masks[0], val_masks=masks[1], test_masks=masks[2])
    graphs = replace(graphs_of([0, 1, -1] * 4, "node"), name="Chameleon-filtered")
    split = get_split(graphs, 4, tmp_path)
    assert split.name == "published-4"
    assert split.train.tolist() == [0, 1, 3]
    assert split.test.tolist() == [9, 10]
