import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from kergnn.cli import main
from kergnn.config import RunConfig
from kergnn.data import DataError, Features, GraphSet, cliques
from kergnn.data.cliques import CliqueError, clique_members, clique_shares
from kergnn.preparation import resolve_config
from kergnn.testing import enumerated_cliques


def graph_set(edges, size):
    return GraphSet(
        name="toy",
        task="graph",
        size=torch.tensor(size),
        edge_index=torch.tensor(edges).reshape(-1, 2).T,
        y=torch.arange(len(size)),
        class_names=tuple(map(str, range(len(size)))),
    )


# A triangle 0 1 2 with a tail 2-3, which is given twice, a loop at 3, and 4 on its own; no nodes
# at all; two triangles that share the edge 6-7; a single node.
TAIL = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 2], [3, 3]]
BOW = [[5, 6], [5, 7], [6, 7], [6, 8], [7, 8]]


@pytest.fixture
def graphs():
    return graph_set(TAIL + BOW, [5, 0, 4, 1])


def test_memberships_by_hand(graphs):
    node, size = graphs.clique_members
    assert node.tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7, 8, 9]
    assert size.tolist() == [3, 3, 2, 3, 2, 1, 3, 3, 3, 3, 3, 3, 1]


@pytest.mark.parametrize("seed", range(6))
def test_memberships_against_every_set_of_nodes(seed):
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(8, 8, generator=generator) < 0.25 + 0.1 * seed).triu(1)
    adjacency = upper | upper.T
    found = clique_members(adjacency.nonzero().T, 8)
    listed = sorted((v, len(c)) for c in enumerated_cliques(adjacency) for v in c)
    assert found.T.tolist() == [list(pair) for pair in listed]


def edges_of(graph):
    made = nx.convert_node_labels_to_integers(graph)
    return torch.from_numpy(nx.to_numpy_array(made)).nonzero().T, len(made)


@pytest.mark.parametrize(
    "graph",
    [
        nx.gnp_random_graph(60, 0.1, seed=0),
        nx.gnp_random_graph(60, 0.5, seed=1),
        nx.gnp_random_graph(40, 0.8, seed=2),
        nx.ring_of_cliques(5, 12),
        nx.star_graph(2000),
        nx.complete_graph(200),  # as many levels of the search
        nx.empty_graph(0),
    ],
    ids=["sparse", "medium", "dense", "ring", "star", "complete", "empty"],
)
def test_memberships_are_those_of_networkx(graph):
    found = clique_members(*edges_of(graph))
    listed = sorted((v, len(clique)) for clique in nx.find_cliques(graph) for v in clique)
    assert found.T.tolist() == [list(pair) for pair in listed]


def test_most_cliques_that_a_graph_can_have():
    """Moon and Moser: n / 3 groups of three that know all but their own group, 3^(n/3) cliques."""
    node, size = clique_members(*edges_of(nx.complete_multipartite_graph(*[3] * 7)))
    assert size.unique().tolist() == [7]
    assert node.bincount().tolist() == [3**6] * 21


@pytest.fixture
def plain(monkeypatch):
    """The search as plain Python, which looks at the bounds of its lists."""
    for name in ("_find", "_neighborhood", "_put_trials"):
        monkeypatch.setattr(cliques, name, getattr(cliques, name).__wrapped__)
    monkeypatch.setattr(cliques, "_ROOM", 1)


@pytest.mark.parametrize("parts", [(12, 12), (2, 2, 9, 9), (3, 3, 3), (1, 20)])
def test_lists_grow_within_their_bounds(plain, parts):
    test_memberships_are_those_of_networkx(nx.complete_multipartite_graph(*parts))


def test_the_search_is_right_without_numba(plain, graphs):
    test_memberships_by_hand(graphs)
    test_memberships_are_those_of_networkx(nx.gnp_random_graph(25, 0.5, seed=3))


def test_shares_sum_to_the_number_of_cliques(graphs):
    share = clique_shares(graphs.clique_members, graphs.num_nodes, [1, 2, 3])
    assert share[2].tolist() == pytest.approx([0, 1 / 2, 1 / 3])
    assert share[6].tolist() == pytest.approx([0, 0, 2 / 3])
    total = torch.zeros(4, 3, dtype=torch.float64).index_add_(0, graphs.graph_of, share)
    expected = torch.tensor([[1, 1, 1], [0, 0, 0], [0, 0, 2], [1, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(total, expected)


def test_sizes_fall_into_two_bins_an_octave_and_larger_ones_into_the_last():
    members = torch.tensor([[0, 0, 0, 0], [3, 4, 5, 9]])
    share = clique_shares(members, 2, [1, 2, 3, 4, 6])
    assert share[0].tolist() == pytest.approx([0, 0, 1 / 3, 1 / 4 + 1 / 5, 1 / 9])
    assert share[1].eq(0).all()


def test_the_recipe_learns_from_the_training_part_alone(graphs):
    features = Features.fit("cliques", graphs, torch.tensor([9]))
    assert features.names == ["cliques of 1 or more"]

    train = torch.arange(5)
    features = Features.fit("degree+cliques", graphs, train)
    assert features.names == ["degree", "cliques of 1", "cliques of 2", "cliques of 3 or more"]
    x = features(graphs)
    assert torch.isfinite(x).all()
    torch.testing.assert_close(x[train, 1:].mean(0), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(x[train, 1:].std(0, correction=0), torch.ones(3))
    stored = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert torch.equal(stored(graphs), x)
    seven = graph_set([[a, b] for a in range(7) for b in range(a)], [7])
    assert Features.fit("cliques", seven, torch.arange(7)).names == [
        *("cliques of 1", "cliques of 2", "cliques of 3", "cliques of 4 to 5"),
        "cliques of 6 or more",
    ]
    assert Features.fit("cliques", graphs, torch.arange(0)).names == ["cliques of 1 or more"]
    # A triangle in the place of one on the left: seen as such whatever the set it comes in.
    alone = graphs.select(torch.tensor([2]))
    assert torch.equal(features(alone), x[5:9])


def test_a_part_of_a_set_has_the_memberships_that_it_would_find_itself(graphs):
    which = torch.tensor([0, 2])
    found = graph_set(TAIL + BOW, [5, 0, 4, 1]).select(which).clique_members
    assert graphs.clique_members is graphs.clique_members
    handed_down = graphs.select(which)
    assert "clique_members" in handed_down.__dict__
    assert torch.equal(handed_down.clique_members, found)


def test_permuted_nodes_have_the_same_features_to_the_bit():
    generator = np.random.default_rng(0)
    edges = generator.integers(0, 12, (40, 2))
    order = generator.permutation(12)
    graphs, moved = graph_set(edges, [12]), graph_set(order[edges], [12])
    nodes = torch.arange(12)
    features = Features.fit("cliques", graphs, nodes)
    assert torch.equal(features(moved)[torch.from_numpy(order)], features(graphs))


def test_too_many_cliques_are_refused_in_one_line(monkeypatch, graphs):
    """The first graph has 6 memberships, the second none, the third 6 as well, the last one."""
    monkeypatch.setattr(cliques, "MOST_MEMBERS", 6)
    assert graphs.clique_members.shape == (2, 13)
    more = graph_set([*TAIL, *BOW, [5, 8]], [5, 0, 4, 1])  # one of four in the place of two
    assert more.clique_members.shape == (2, 11)
    monkeypatch.setattr(cliques, "MOST_MEMBERS", 5)
    message = (
        r"^features is 'cliques', but toy, graph 2 \(from 0\) has maximal cliques of more than 5 "
        "members in all, too many for the recipe 'cliques'$"
    )
    with pytest.raises(DataError, match=message):
        Features.fit("cliques", graph_set([[0, 1], *BOW], [5, 0, 4, 1]), torch.arange(10))


def test_a_network_of_many_cliques_is_refused_before_it_takes_all_memory():
    parts = nx.complete_multipartite_graph(*[3] * 15)  # 3^15 cliques of 15 nodes
    edges = torch.tensor([*parts.edges], dtype=torch.long).T
    with pytest.raises(CliqueError, match="more than 10,000,000 members"):
        clique_members(torch.cat([edges, edges.flip(0)], 1), 45)


@pytest.mark.parametrize("recipe", ["attr+cliques", "attr+binned-degree"])
def test_the_width_of_the_input_tells_nothing_of_the_largest_clique(recipe):
    """It may be one of the test part."""
    widths = set()
    for largest in (2, 12):
        edges = [[a, b] for a in range(2, 2 + largest) for b in range(a) if a > b >= 2] + [[0, 1]]
        graphs = graph_set(edges, [2, 12])
        graphs = replace(graphs, attributes=torch.rand(14, 98, dtype=torch.float64))
        config = resolve_config(RunConfig(dataset="toy", features=recipe), graphs)
        widths.add(config.input_channels)
    assert widths == {0}


def test_nodes_of_one_graph_can_be_described_by_cliques(graphs):
    nodes = replace(graphs, task="node", y=torch.arange(10) % 4)
    x = Features.fit("cliques", nodes, torch.arange(0, 10, 2))(nodes)
    assert x.shape == (10, 3)


def test_a_network_is_trained_and_predicts_larger_cliques(tmp_path, monkeypatch, capsys):
    """One film of all people against two films that share one."""
    monkeypatch.setenv("KERGNN_CACHE", str(tmp_path / "cache"))
    made = []
    for n in [*range(4, 9)] * 6:
        one = [*nx.complete_graph(n).edges]
        two = [*one, *((a + n - 1, b + n - 1) for a, b in one)]
        made += [{"nodes": n, "edges": one, "label": "one"}]
        made += [{"nodes": 2 * n - 1, "edges": two, "label": "two"}]
    train, new = tmp_path / "train.jsonl", tmp_path / "new.jsonl"
    train.write_text("\n".join(map(json.dumps, made)))
    large = [{"nodes": n, "edges": [*nx.complete_graph(n).edges]} for n in (0, 1, 30)]
    new.write_text("\n".join(map(json.dumps, large)))
    run = str(tmp_path / "run")
    options = ["--features", "degree+cliques", "--epochs", "3", "--no-report", "--out", run]
    assert main(["train", str(train), *options]) == 0
    assert main(["predict", run, str(new), "--out", str(tmp_path / "classes.csv")]) == 0
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 4

    monkeypatch.setattr(cliques, "MOST_MEMBERS", 20)
    assert main(["predict", run, str(new)]) == 2
    assert "graph 2 (from 0) has maximal cliques of more than 20 members" in capsys.readouterr().err
