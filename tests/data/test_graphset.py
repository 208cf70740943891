from dataclasses import replace

import torch

from kergnn.data import load_graphs
from kergnn.data.graphset import GraphSet, encode


def make(**changes):
    values = {
        "name": "toy",
        "task": "graph",
        "size": torch.tensor([2, 0, 3]),
        "edge_index": torch.tensor([[3, 0, 2, 2, 1], [4, 1, 3, 2, 0]]),
        "y": torch.tensor([1, 0, 1]),
        "class_names": ("a", "b"),
        **changes,
    }
    return GraphSet(**values)


def test_degrees_count_neighbours_once():
    """0-1 is given in both directions, 2 has a self-loop."""
    assert make().degree.tolist() == [1, 1, 1, 2, 1]
    assert make(size=torch.tensor([2, 0, 4])).degree.tolist() == [1, 1, 1, 2, 1, 0]


def test_graphs_as_pyg_data():
    x = torch.arange(5.0).unsqueeze(1)
    first, empty, last = make().to_data_list(x)
    assert first.edge_index.tolist() == [[0, 1], [1, 0]]
    assert empty.x.shape == (0, 1)
    assert last.edge_index.tolist() == [[1, 0, 0], [2, 1, 0]]
    assert last.x.flatten().tolist() == [2, 3, 4]
    assert [int(g.y) for g in (first, empty, last)] == [1, 0, 1]


def test_the_fingerprint_is_of_the_content():
    assert make().fingerprint == make(name="other", source="elsewhere").fingerprint
    for changes in (
        {"y": torch.tensor([1, 1, 1])},
        {"size": torch.tensor([2, 1, 2])},
        {"class_names": ("a", "c")},
        {"attributes": torch.ones(5, 1)},
        {"edge_index": torch.tensor([[3], [4]])},
    ):
        assert make().fingerprint != make(**changes).fingerprint
    assert load_graphs("MUTAG").fingerprint == "83617f844f8c9c21"


def test_names_are_sorted_as_numbers_before_words():
    codes, names = encode(["b", "10", "9", "b", "-1"])
    assert names == ("-1", "9", "10", "b")
    assert codes.tolist() == [3, 2, 1, 3, 0]


def test_a_large_part_is_handed_its_share_of_the_simple_edges():
    """Nodes 2, 3, 4 become 0, 1, 2; they have a loop and an edge that is given twice."""
    edge_index = torch.tensor([[3, 0, 2, 2, 1, 4], [4, 1, 3, 2, 0, 3]])
    whole = make(edge_index=edge_index, size=torch.tensor([2, 0, 3]))
    assert "simple_edges" not in whole[2].__dict__  # all edges are not sorted for one graph
    part = whole.select(torch.tensor([1, 2]))
    assert part.__dict__["simple_edges"].tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert replace(part).simple_edges.tolist() == part.simple_edges.tolist()
    assert part.degree.tolist() == [1, 2, 1]
    assert whole[1].__dict__["simple_edges"].shape == (2, 0)  # by now they are known
