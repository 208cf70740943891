from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from kergnn.data import ba_2motifs, ground_truth, hexagons, load_graphs, planted, where_available
from kergnn.data.graphset import GraphSet
from kergnn.data.motifs import MOTIFS, _rewired, motif_graph


def as_networkx(graphs, g, truth=False):
    data = graphs.to_data_list(torch.zeros(graphs.num_nodes, 1))[g]
    edges = data.edge_index[:, data.edge_truth] if truth else data.edge_index
    graph = nx.Graph(edges.T.tolist())
    if not truth:
        graph.add_nodes_from(range(data.num_nodes))
    return graph


def test_ba_2motifs_has_a_house_or_a_cycle_in_every_graph():
    graphs = ba_2motifs(num_graphs=20)
    assert graphs.y.bincount().tolist() == [10, 10]
    assert graphs.size.tolist() == [25] * 20
    for g in (0, 9, 10, 19):
        truth = as_networkx(graphs, g, truth=True)
        wanted = nx.house_graph() if g < 10 else nx.cycle_graph(5)
        assert nx.is_isomorphic(truth, wanted)
        assert set(truth) == set(range(20, 25))
    assert graphs.node_truth.view(20, 25).sum(1).tolist() == [5] * 20


def test_generated_sets_are_the_same_every_time_and_leave_the_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = ba_2motifs(num_graphs=10)
    assert torch.equal(torch.rand(2), expected)
    assert ba_2motifs(num_graphs=10).fingerprint == first.fingerprint
    assert ba_2motifs(num_graphs=10, seed=1).fingerprint != first.fingerprint
    assert hexagons(10).fingerprint == hexagons(10).fingerprint


@pytest.mark.parametrize("motif", [*MOTIFS, "ring4", "star4"])
def test_planted_graphs_differ_in_the_motif_only(motif):
    graphs = planted(motif, num_graphs=12, noise=0.1)
    pattern = motif_graph(motif)
    for g in range(12):
        graph = as_networkx(graphs, g)
        found = nx.algorithms.isomorphism.GraphMatcher(graph, pattern).subgraph_is_monomorphic()
        assert found == bool(graphs.y[g])
        assert nx.is_connected(graph)
        if graphs.y[g]:
            assert nx.is_isomorphic(as_networkx(graphs, g, truth=True), pattern)
    with_motif = graphs.graph_of[graphs.node_truth].unique()
    assert torch.equal(with_motif, graphs.y.nonzero().flatten())


@pytest.mark.parametrize("motif", ["ring6", "ring3", "star4", "house"])
def test_noise_makes_no_other_copy_of_the_motif(motif):
    graphs = planted(motif, num_graphs=30, noise=0.1)
    pattern = motif_graph(motif)
    for g in range(1, 30, 2):
        graph = as_networkx(graphs, g)
        matcher = nx.algorithms.isomorphism.GraphMatcher(graph, pattern)
        copies = {frozenset(found) for found in matcher.subgraph_monomorphisms_iter()}
        assert copies == {frozenset(as_networkx(graphs, g, truth=True))}


def test_graphs_without_noise_stay_as_they_are():
    made = [planted(motif, num_graphs=40).fingerprint for motif in MOTIFS]
    assert made == ["38f0a17beddc3566", "6d001a32073d6e0d", "1f237cfd0155b043", "9b126094ef341ee0"]


def test_rewiring_keeps_the_degree_of_every_node():
    random = np.random.default_rng(0)
    graph = nx.disjoint_union(nx.path_graph(12), nx.cycle_graph(6))
    graph.add_edge(3, 12)
    made = [_rewired(graph, 12, random) for _ in range(20)]
    made = [other for other in made if other is not None]
    assert made
    for other in made:
        assert dict(other.degree) == dict(graph.degree)
        assert nx.is_connected(other)
        assert sum(min(e) >= 12 for e in other.edges) < 6
    assert len({frozenset(map(frozenset, other.edges)) for other in made}) > 1


def test_classes_have_equal_degrees():
    """Over many graphs the two classes have the same mean number of nodes of each degree."""
    graphs = planted("house", num_graphs=100)
    counts = [
        graphs.degree[(graphs.y == c)[graphs.graph_of]].clamp(max=5).bincount(minlength=6)
        for c in (0, 1)
    ]
    assert graphs.degree.min() >= 1
    share = (counts[0] - counts[1]).abs() / counts[0].sum()
    assert share.max() < 0.04


def test_hexagons_and_triangles_have_equal_degrees():
    graphs = hexagons(20)
    degrees = [graphs.degree[graphs.graph_of == g].sort().values.tolist() for g in range(20)]
    assert degrees[0::2] == degrees[1::2]
    for g in range(20):
        cycles = nx.cycle_basis(as_networkx(graphs, g))
        assert {len(c) for c in cycles} == {6 if g % 2 == 0 else 3}
        assert sum(map(len, cycles)) == int(graphs.node_truth[graphs.graph_of == g].sum())


def molecule(elements, bonds, label):
    names = ("0", "1", "2", "3", "4")
    return GraphSet(
        name="Mutagenicity",
        task="graph",
        size=torch.tensor([len(elements)]),
        edge_index=torch.tensor(bonds).T,
        y=torch.tensor([label]),
        class_names=("0", "1"),
        labels=torch.tensor([[names.index(e)] for e in elements]),
        label_names=(names,),
    )


def test_nitro_and_amino_groups_of_mutagens_are_the_truth():
    C, O, H, N = "0", "1", "3", "4"  # noqa: E741
    elements = [C, N, O, O, C, N, H, H, N, O, H]
    bonds = [[0, 1], [1, 2], [3, 1], [0, 4], [4, 5], [5, 6], [5, 7], [4, 8], [8, 9], [8, 10]]
    found = ground_truth(molecule(elements, bonds, 0))
    assert found.node_truth.nonzero().flatten().tolist() == [1, 2, 3, 5, 6, 7]
    assert found.edge_truth.nonzero().flatten().tolist() == [1, 2, 5, 6]
    assert not ground_truth(molecule(elements, bonds, 1)).node_truth.any()
    # Ammonium has one hydrogen too many.
    ammonium = ground_truth(molecule([N, H, H, H], [[0, 1], [0, 2], [0, 3]], 0))
    assert not ammonium.node_truth.any()


def test_the_truth_is_known_of_some_sets_only():
    graphs = hexagons(4)
    assert ground_truth(graphs) is graphs
    assert ground_truth(load_graphs("MUTAG")) is None


def test_a_truth_is_selected_and_counts_in_the_fingerprint():
    graphs = hexagons(6)
    part = graphs.select(torch.tensor([1, 4]))
    assert part.node_truth.tolist() == [
        bool(t) for g in (1, 4) for t in graphs.node_truth[graphs.graph_of == g]
    ]
    first, second = part.to_data_list(torch.zeros(part.num_nodes, 1))
    whole = graphs.to_data_list(torch.zeros(graphs.num_nodes, 1))
    assert torch.equal(first.edge_truth, whole[1].edge_truth)
    assert torch.equal(second.edge_truth, whole[4].edge_truth)
    bare = replace(graphs, node_truth=None, edge_truth=None)
    flipped = replace(graphs, node_truth=~graphs.node_truth)
    assert len({graphs.fingerprint, bare.fingerprint, flipped.fingerprint}) == 3


def test_generated_sets_are_in_the_catalogue():
    assert where_available("Hexagons") == "generated"
    assert load_graphs("hexagons").num_graphs == 200


def test_arguments_are_checked():
    for motif in ("rings", "ring2", "star3", "house3", ""):
        with pytest.raises(ValueError, match=f"motif is '{motif}'"):
            planted(motif)
    with pytest.raises(ValueError, match="noise is 2"):
        planted("star", noise=2)
    with pytest.raises(ValueError, match="num_graphs is 0"):
        ba_2motifs(num_graphs=0)
