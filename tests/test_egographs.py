import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from kergnn import EgoGraphs, EgoSubgraphs
from kergnn.testing import ego_graph


def dense(ego, node):
    nodes, hops, edge_index = ego[node]
    adjacency = torch.zeros(len(nodes), len(nodes), dtype=torch.long)
    for a, b in edge_index.T.tolist():
        adjacency[a, b] += 1  # a double edge would show as 2
    return nodes.tolist(), hops.tolist(), adjacency


@st.composite
def messy_graphs(draw):
    """Edge lists with self-loops, double edges and edges given in one direction."""
    num_nodes = draw(st.integers(1, 9))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=25))
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T, num_nodes


@settings(max_examples=150, deadline=None)
@given(messy_graphs(), st.integers(0, 4), st.none() | st.integers(1, 6))
def test_every_ego_graph_equals_networkx(graph, num_hops, max_nodes):
    edge_index, num_nodes = graph
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
    assert len(ego) == num_nodes
    for v in range(num_nodes):
        nodes, hops, adjacency = dense(ego, v)
        want_nodes, want_hops, want = ego_graph(edge_index, num_nodes, v, num_hops, max_nodes)
        assert (nodes, hops) == (want_nodes, want_hops)
        assert adjacency.tolist() == want.astype(int).tolist()


@pytest.mark.parametrize(("num_hops", "max_nodes"), [(1, 10), (1, None), (2, 12), (3, 6)])
def test_hubs_too_equal_networkx(num_hops, max_nodes):
    """Degrees up to a hundred: rows are longer than ego-graphs, and are searched, not read."""
    graph = nx.barabasi_albert_graph(150, 2, seed=0)
    graph.add_edges_from((0, i) for i in range(1, 150, 2))
    graph.add_edges_from((1, i) for i in range(2, 150, 3))
    edge_index = torch.tensor(list(graph.edges)).T
    ego = EgoGraphs.from_edge_index(edge_index, 150, num_hops, max_nodes)
    for v in range(0, 150, 3):
        nodes, hops, adjacency = dense(ego, v)
        want_nodes, want_hops, want = ego_graph(edge_index, 150, v, num_hops, max_nodes)
        assert (nodes, hops) == (want_nodes, want_hops)
        assert adjacency.tolist() == want.astype(int).tolist()
    rows, cols = ego.edge_index
    order = rows * ego.num_members + cols
    assert torch.equal(order, order.sort().values)  # neighbours ascend, as documented


def test_a_graph_written_out_by_hand():
    """Triangle 0-1-2, tail 2-3-4, isolated 5; given once, twice and as a loop."""
    edge_index = torch.tensor([[0, 2, 2, 1, 3, 4, 3], [1, 1, 0, 0, 2, 3, 3]])
    ego = EgoGraphs.from_edge_index(edge_index, 6, num_hops=2, max_nodes=4)
    assert ego.size.tolist() == [4, 4, 4, 4, 3, 1]
    # Node 2 has the largest degree, so it comes before node 1 within the first hop.
    assert dense(ego, 0)[:2] == ([0, 2, 1, 3], [0, 1, 1, 2])
    assert dense(ego, 0)[2].tolist() == [[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]]
    # 0 and 1 are tied in hop and degree: the smaller id stays.
    assert dense(ego, 3)[:2] == ([3, 2, 4, 0], [0, 1, 1, 2])
    assert dense(ego, 5)[:2] == ([5], [0])


def test_truncation_keeps_nearer_nodes():
    graph = nx.random_regular_graph(3, 40, seed=0)
    edge_index = torch.tensor(list(graph.edges)).T
    whole = EgoGraphs.from_edge_index(edge_index, 40, num_hops=4)
    for max_nodes in (1, 3, 4, 9):
        cut = EgoGraphs.from_edge_index(edge_index, 40, num_hops=4, max_nodes=max_nodes)
        for v in range(40):
            assert dense(cut, v)[0] == dense(whole, v)[0][:max_nodes]
            dropped = dense(whole, v)[1][max_nodes:]
            assert not dropped or max(dense(cut, v)[1]) <= min(dropped)


def test_a_hub_stays_small():
    """Star with 50,000 leaves: the ego-graphs of 2 hops truncated to 5 have 5 nodes each."""
    leaves = torch.arange(1, 50_001)
    edge_index = torch.stack([torch.zeros_like(leaves), leaves])
    ego = EgoGraphs.from_edge_index(edge_index, 50_001, num_hops=2, max_nodes=5)
    assert set(ego.size.tolist()) == {5}
    assert dense(ego, 0)[0] == [0, 1, 2, 3, 4]
    assert dense(ego, 7)[0] == [7, 0, 1, 2, 3]
    assert ego.neighbor.size(0) == 50_001 * 8


def test_threads_build_what_one_thread_builds():
    torch.manual_seed(0)
    edge_index = torch.randint(0, 20_000, (2, 50_000))
    threads = torch.get_num_threads()
    try:
        built = []
        for n in (1, 2):
            torch.set_num_threads(n)
            built.append(EgoGraphs.from_edge_index(edge_index, 20_000, 2, 12))
    finally:
        torch.set_num_threads(threads)
    one, two = built
    for name in ("index", "size", "hop", "degree", "neighbor"):
        assert torch.equal(getattr(one, name), getattr(two, name))


def make_data(edges, num_nodes):
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.randn(num_nodes, 2), edge_index=edge_index, num_nodes=num_nodes)


GRAPHS = [([(0, 1), (1, 2)], 3), ([], 2), ([(0, 1), (1, 2), (2, 0)], 4), ([], 0)]


def test_pyg_collates_to_the_ego_graphs_of_the_union():
    graphs = [EgoSubgraphs(2, 3)(make_data(*g)) for g in GRAPHS]
    batch = Batch.from_data_list(graphs)
    assert batch.num_graphs == 4
    union = EgoGraphs.from_edge_index(batch.edge_index, batch.num_nodes, 2, 3)
    ego = EgoGraphs.from_data(batch)
    assert ego.num_nodes == 9
    assert torch.equal(ego.edge_index, union.edge_index)
    for name in ("index", "size", "hop", "degree", "neighbor"):
        assert torch.equal(getattr(ego, name), getattr(union, name))
        parts = EgoGraphs.cat([EgoGraphs.from_data(g) for g in graphs])
        assert torch.equal(getattr(parts, name), getattr(union, name))


def test_batches_of_a_loader_and_a_data_set_separate_again():
    class Small(InMemoryDataset):
        def __init__(self):
            super().__init__(transform=None)
            self.data, self.slices = self.collate([EgoSubgraphs()(make_data(*g)) for g in GRAPHS])

    stored = [EgoSubgraphs()(make_data(*g)) for g in GRAPHS]
    sizes = [[g.ego_size.tolist(), g.ego_index.tolist()] for g in stored]
    assert [[g.ego_size.tolist(), g.ego_index.tolist()] for g in Small()] == sizes
    (batch,) = DataLoader(stored, batch_size=4)
    assert [[g.ego_size.tolist(), g.ego_index.tolist()] for g in batch.to_data_list()] == sizes


def test_an_ego_graph_knows_its_offsets():
    ego = EgoGraphs.from_edge_index(torch.tensor([[0], [1]]), 3)
    assert ego.ptr.tolist() == [0, 2, 4, 5]
    assert ego.center.tolist() == [0, 0, 1, 1, 2]
    assert ego.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert repr(ego) == "EgoGraphs(num_nodes=3, num_members=5, num_edges=4)"
    with pytest.raises(IndexError, match="node is 3"):
        ego[3]


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "options", "message"),
    [
        (torch.zeros(3, 2).long(), 3, {}, r"edge_index has shape \(3, 2\): it must be \(2, E\)"),
        (torch.zeros(2, 2), 3, {}, "edge_index has dtype torch.float32"),
        (torch.tensor([[0], [3]]), 3, {}, "edge_index contains 3: .* num_nodes - 1 = 2"),
        (torch.tensor([[-1], [0]]), 3, {}, "edge_index contains -1"),
        ([[0], [1]], 3, {}, "edge_index is a list"),
        (torch.zeros(2, 0).long(), -1, {}, "num_nodes is -1: .* at least 0"),
        (torch.zeros(2, 0).long(), 3, {"num_hops": -1}, "num_hops is -1"),
        (torch.zeros(2, 0).long(), 3, {"num_hops": 1.5}, "num_hops is 1.5"),
        (torch.zeros(2, 0).long(), 3, {"max_nodes": 0}, "max_nodes is 0: .* at least 1"),
    ],
)
def test_bad_input_is_named(edge_index, num_nodes, options, message):
    with pytest.raises(ValueError, match=message):
        EgoGraphs.from_edge_index(edge_index, num_nodes, **options)


def test_data_without_ego_graphs_is_named():
    with pytest.raises(ValueError, match=r"ego_index.*EgoSubgraphs"):
        EgoGraphs.from_data(Data(x=torch.ones(1, 1)))
    with pytest.raises(ValueError, match="edge_index is missing"):
        EgoSubgraphs()(Data(x=torch.ones(1, 1)))
