import numpy as np
import pytest
import torch

from kergnn import EgoGraphs
from kergnn.batches import GraphBatches
from kergnn.data import GraphSet
from kergnn.engine.topology import topology
from kergnn.testing import random_graph


@pytest.fixture
def batches():
    """Graphs of several sizes, one of them empty, one a single node, one larger than a tile."""
    sizes = [5, 0, 1, 300, 8, 120, 9]
    parts = [random_graph(n, 5 / max(n, 5), seed=n) for n in sizes]
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    edge_index = torch.cat([e + int(p) for (_, e), p in zip(parts, ptr, strict=False)], dim=1)
    y = torch.arange(len(sizes)) % 2
    graphs = GraphSet("some", "graph", torch.tensor(sizes), edge_index, y, ("a", "b"))
    ego = EgoGraphs.from_edge_index(edge_index, graphs.num_nodes, 1, 6)
    x = torch.cat([x for x, _ in parts])
    return GraphBatches(graphs, x, ego, torch.device("cpu")), parts


@pytest.mark.parametrize("which", [[6, 3, 0], [1], [2, 1, 2], [0, 1, 2, 3, 4, 5, 6], [5, 1], []])
def test_a_batch_is_the_union_of_its_graphs(batches, which):
    cut, parts = batches
    batch = cut(torch.tensor(which, dtype=torch.long))
    sizes = [len(parts[g][0]) for g in which]
    egos = [EgoGraphs.from_edge_index(parts[g][1], len(parts[g][0]), 1, 6) for g in which]
    assert batch.num_graphs == len(which)
    assert batch.batch.tolist() == [i for i, size in enumerate(sizes) for _ in range(size)]
    assert batch.y.tolist() == [g % 2 for g in which]
    assert batch.ego.num_nodes == sum(sizes)
    if which:
        union = EgoGraphs.cat(egos)
        assert torch.equal(batch.x, torch.cat([parts[g][0] for g in which]))
        assert batch.ego.max_hop == union.max_hop
        assert batch.ego.num_members == union.num_members
        for name in ("index", "size", "hop", "degree", "neighbor"):
            assert torch.equal(getattr(batch.ego, name), getattr(union, name)), name


def test_the_topology_of_a_batch_is_that_of_its_ego_graphs(batches):
    cut, parts = batches
    which = [4, 3, 1, 6, 6, 5, 0]
    batch = cut(torch.tensor(which))
    union = EgoGraphs.cat(
        EgoGraphs.from_edge_index(parts[g][1], len(parts[g][0]), 1, 6) for g in which
    )
    got, expected = topology(batch.ego), topology(union)
    for name in expected._fields[1:]:
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), name)
    bounds = np.cumsum([0, *(len(parts[g][0]) for g in which)])
    assert set(got.tiles) <= set(bounds)
    assert got.tiles[0] == 0
    assert got.tiles[-1] == bounds[-1]
    assert (np.diff(got.tiles) > 0).all()


def test_ego_graphs_of_a_batch_have_no_other_attributes(batches):
    cut, _ = batches
    with pytest.raises(AttributeError, match="weight"):
        cut(torch.tensor([0])).ego.weight  # noqa: B018


def test_graphs_that_do_not_exist_are_refused(batches):
    made, parts = batches
    for which in ([-1], [0, len(parts)]):
        with pytest.raises(IndexError, match="which must lie in 0 to"):
            made(torch.tensor(which))
