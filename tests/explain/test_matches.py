import networkx as nx
import pytest
import torch

from kergnn import EgoGraphs, KerGNN
from kergnn.batches import GraphBatches
from kergnn.data import GraphSet, load_graphs
from kergnn.explain import best_matches, count_occurrences, count_shapes, occurs, shape
from kergnn.explain.matches import structures
from kergnn.testing import random_graph


@pytest.mark.parametrize(
    ("graph", "kind", "text"),
    [
        (nx.empty_graph(0), "empty", "no edge"),
        (nx.path_graph(2), "path", "path of 2"),
        (nx.path_graph(5), "path", "path of 5"),
        (nx.star_graph(3), "star", "star of 3 leaves"),
        (nx.balanced_tree(2, 2), "tree", "tree of 7"),
        (nx.cycle_graph(3), "ring", "ring of 3"),
        (nx.cycle_graph(6), "ring", "ring of 6"),
        (nx.complete_graph(4), "clique", "clique of 4"),
        (nx.lollipop_graph(3, 2), "ring with tails", "ring of 3 with tails"),
        (nx.house_graph(), "other", "5 nodes, 2 rings"),
        (nx.disjoint_union(nx.path_graph(2), nx.cycle_graph(3)), "parts", None),
    ],
)
def test_shapes(graph, kind, text):
    found = shape(graph)
    assert found.kind == kind
    if text is not None:
        assert str(found) == text


def test_rings_and_stars_are_counted_within_other_shapes_too():
    wheel = nx.wheel_graph(7)  # a hub with six neighbours on a ring: three of them are not joined
    graphs = [nx.cycle_graph(5), nx.star_graph(4), nx.complete_graph(5), nx.house_graph(), wheel]
    counts = count_shapes(graphs)
    assert (counts["ring"], counts["star"], counts["clique"], counts["other"]) == (1, 1, 1, 2)
    assert counts["contains ring"] == 4
    assert counts["contains star"] == 2


def brute_force(graph, pattern):
    return nx.isomorphism.GraphMatcher(graph, pattern).subgraph_is_monomorphic()


def test_occurs_agrees_with_a_plain_search():
    found = []
    for seed in range(60):
        graph = nx.gnp_random_graph(9, 0.3, seed=seed)
        pattern = nx.gnp_random_graph(4 + seed % 3, 0.5, seed=1000 + seed)
        pattern.remove_nodes_from(list(nx.isolates(pattern)))
        found.append(occurs(pattern, [graph]))
        assert found[-1] == brute_force(graph, pattern), seed
    assert 10 < sum(found) < 50


def test_a_pattern_is_looked_for_in_all_graphs_and_labels_count_if_asked():
    ring, path = nx.cycle_graph(6), nx.path_graph(6)
    assert occurs(nx.cycle_graph(6), [path, ring])
    assert not occurs(nx.cycle_graph(5), [path, ring])
    assert count_occurrences(nx.path_graph(3), [path, ring, nx.path_graph(2)]) == 2
    nx.set_node_attributes(path, dict(enumerate("CCNCCC")), "label")
    pattern = nx.path_graph(3)
    nx.set_node_attributes(pattern, dict(enumerate("CNC")), "label")
    assert occurs(pattern, [path], by="label")
    pattern.nodes[0]["label"] = "N"
    assert not occurs(pattern, [path], by="label")
    assert occurs(pattern, [path])


def test_the_graphs_of_a_set():
    mutag = load_graphs("MUTAG")
    first, last = structures(mutag, [0, 187])
    assert (first.number_of_nodes(), first.number_of_edges()) == (17, 19)
    assert first.nodes[0]["label"] == "0"
    assert last.number_of_nodes() == int(mutag.size[187])
    edges = mutag.edge_index[:, mutag.graph_of[mutag.edge_index[0]] == 187] - mutag.ptr[187]
    assert set(last.edges()) == {(min(e), max(e)) for e in edges.T.tolist()}


def test_the_best_matches_are_those_of_the_largest_kernel_values(monkeypatch):
    sizes = [7, 1, 9, 6, 8]
    parts = [random_graph(n, 0.4, seed=n) for n in sizes]
    parts[3] = (parts[0][0][:6], parts[3][1])
    start = [sum(sizes[:i]) for i in range(5)]
    edge_index = torch.cat([e + s for (_, e), s in zip(parts, start, strict=True)], dim=1)
    x = torch.cat([x for x, _ in parts]).float()
    graphs = GraphSet("some", "graph", torch.tensor(sizes), edge_index, torch.arange(5), ())
    ego = EgoGraphs.from_edge_index(edge_index, 31)
    torch.manual_seed(1)
    model = KerGNN(x.size(1), 3, 2, filter_size=4).eval()
    batches = GraphBatches(graphs, x, ego, torch.device("cpu"))
    which = torch.tensor([4, 0, 2])
    nodes = [n for g in (4, 0, 2) for n in range(start[g], start[g] + sizes[g])]
    for limit in (20_000, 8):  # in one piece, and in several
        monkeypatch.setattr("kergnn.prediction._NODES_AT_ONCE", limit)
        found = best_matches(model, batches, which, count=3)
        features = model.node_features(x, ego)
        for layer, conv in enumerate(model.convs):
            values = conv.kernel_values(features[layer], ego).detach()
            for i in range(3):
                column = {n: float(values[n, i]) for n in nodes}
                best = sorted({round(v, 4) for v in column.values()}, reverse=True)[:3]
                assert [round(m.value, 4) for m in found[layer][i]] == best
                for match in found[layer][i]:
                    assert match.value == pytest.approx(column[match.node], rel=1e-4)


def test_isomorphic_ego_graphs_are_one_match():
    ring = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    graphs = GraphSet("ring", "graph", torch.tensor([6]), ring, torch.zeros(1), ("a",))
    model = KerGNN(2, 3, 2, num_layers=1)
    ego = EgoGraphs.from_edge_index(ring, 6)
    batches = GraphBatches(graphs, torch.ones(6, 2), ego, torch.device("cpu"))
    assert [len(m) for m in best_matches(model, batches, torch.tensor([0]))[0]] == [1, 1, 1]
