import json

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn import KerGNNClassifier
from kergnn.data import DataError, Features, GraphSet
from kergnn.data.colors import FEWEST_NODES, MOST_COLORS, NUM_ROUNDS, node_colors
from kergnn.testing import random_graph, unfolded_color

NAMES = ("C", "N", "O")


def one_graph(edge_index, labels=None, names=NAMES, num_nodes=None, copies=1):
    """Return the same graph several times."""
    n = len(labels) if labels is not None else num_nodes
    column = None if labels is None else torch.tensor([[names.index(x)] for x in labels * copies])
    shifts = [n * copy for copy in range(copies)]
    return GraphSet(
        name="toy",
        task="graph",
        size=torch.full((copies,), n),
        edge_index=torch.cat([torch.as_tensor(edge_index) + shift for shift in shifts], 1),
        y=torch.zeros(copies, dtype=torch.long),
        class_names=("a",),
        labels=column,
        label_names=() if column is None else (names,),
    )


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(1, 9),
    probability=st.floats(0, 1),
    seed=st.integers(0, 10**6),
    labelled=st.booleans(),
)
def test_nodes_share_a_color_if_their_surroundings_unfold_alike(
    num_nodes, probability, seed, labelled
):
    _, edge_index = random_graph(num_nodes, probability, seed)
    letters = np.random.default_rng(seed).choice(list(NAMES), num_nodes).tolist()
    graphs = one_graph(edge_index, letters if labelled else None, num_nodes=num_nodes)
    adjacency = torch.zeros(num_nodes, num_nodes, dtype=torch.long)
    adjacency[tuple(graphs.simple_edges)] = 1
    start = letters if labelled else [str(int(d)) for d in graphs.degree]
    labels = (graphs.labels, graphs.label_names) if labelled else None
    for k, numbers in enumerate(node_colors(graphs, labels)):
        unfolded = [unfolded_color(adjacency, start, v, k) for v in range(num_nodes)]
        alike = [[a == b for b in unfolded] for a in unfolded]
        assert (numbers[:, None] == numbers[None, :]).tolist() == alike


def test_a_node_and_its_neighbors_do_not_change_places():
    """Three N around a C, and three C around an N; any number of them, so that no sum ties."""
    for leaves in range(1, 9):
        edges = torch.tensor([[0] * leaves, range(1, leaves + 1)])
        edges = torch.cat([edges, edges + leaves + 1], 1)
        letters = ["C", *["N"] * leaves, "N", *["C"] * leaves]
        graphs = one_graph(edges, letters)
        for numbers in node_colors(graphs, (graphs.labels, graphs.label_names)):
            assert numbers[0] != numbers[leaves + 1]
            assert numbers[1] != numbers[-1]


PATH = [[0, 1, 2], [1, 2, 3]]  # C-N-C-O


def test_columns_are_the_frequent_colors_of_the_training_part():
    graphs = one_graph(PATH, ["C", "N", "C", "O"], copies=FEWEST_NODES)
    fitted = Features.fit("wl", graphs, torch.arange(graphs.num_nodes))
    first = ["C(N)", "C(N,O)", "N(2xC)", "O(C)"]
    assert sorted(fitted.names[:4]) == first
    second = ["C(N(2xC))", "C(N(2xC),O(C))", "N(C(N),C(N,O))", "O(C(N,O))"]
    assert sorted(fitted.names[4:]) == second
    x = fitted(graphs)
    assert x[0].nonzero().flatten().tolist() == [
        fitted.names.index("C(N)"),
        fitted.names.index("C(N(2xC))"),
    ]
    assert (x.sum(1) == NUM_ROUNDS).all()
    fewer = torch.arange(graphs.num_nodes - 4)  # 19 of each
    assert Features.fit("label+wl", graphs, fewer).names == [*NAMES]
    with pytest.raises(DataError, match="no 20 nodes of the training part of toy"):
        Features.fit("wl", graphs, fewer)


def test_colors_are_known_again_in_another_set_whatever_its_numbering():
    """The other set names more labels, in another order, and has a colour that nobody knows."""
    graphs = one_graph(PATH, ["C", "N", "C", "O"], copies=FEWEST_NODES)
    fitted = Features.fit("label+wl", graphs, torch.arange(graphs.num_nodes))
    stored = Features.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert stored == fitted
    other = one_graph([[0, 1, 2, 3], [1, 2, 3, 4]], ["O", "C", "N", "C", "C"], ("O", "N", "C"))
    row = stored(other)
    assert row[0, 3:].nonzero().flatten().tolist() == [
        fitted.names.index(name) - 3 for name in ("O(C)", "O(C(N,O))")
    ]
    assert row[4].sum() == 1  # its label alone: no C beside a C was trained on


def test_other_labels_than_those_of_training_are_refused():
    """By ``wl`` alone as by ``label``: with an unknown label, without labels, in another order."""
    graphs = one_graph(PATH, ["C", "N", "C", "O"], copies=FEWEST_NODES)
    fitted = Features.fit("wl", graphs, torch.arange(graphs.num_nodes))
    strange = one_graph(PATH, ["C", "N", "C", "X"], ("C", "N", "X"))
    with pytest.raises(DataError, match="node label 'X', which the model does not know"):
        fitted(strange)
    with pytest.warns(UserWarning, match="'X'"):
        row = fitted(strange, unknown="zeros")
    known = [fitted.names.index(name) for name in ("C(N)", "C(N(2xC))")]
    assert row[0].nonzero().flatten().tolist() == known  # three steps away from X
    assert row[3].sum() == 0
    with pytest.raises(DataError, match="has 0 node labels a node, the model needs 1"):
        fitted(one_graph(PATH, num_nodes=4))


def test_several_labels_a_node_count_together_and_are_found_by_their_names():
    labels = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]] * FEWEST_NODES)
    shape = {"name": "two", "task": "graph", "class_names": ("a",), "edge_index": torch.empty(2, 0)}
    shape |= {"size": torch.tensor([len(labels)]), "y": torch.tensor([0])}
    shape["edge_index"] = shape["edge_index"].long()
    names = (("x", "y"), ("x", "y"))
    graphs = GraphSet(**shape, labels=labels, label_names=names, label_columns=("first", "second"))
    fitted = Features.fit("wl", graphs, torch.arange(len(labels)))
    assert sorted(fitted.names[:4]) == ["x/x()", "x/y()", "y/x()", "y/y()"]
    assert len(set(fitted.names)) == 8  # nodes on their own look alike in both rounds
    turned = GraphSet(
        **shape, labels=labels.flip(1), label_names=names, label_columns=("second", "first")
    )
    assert torch.equal(fitted(turned), fitted(graphs))


def test_degrees_stay_degrees_where_graphs_have_labels_later():
    graphs = one_graph(PATH, num_nodes=4, copies=FEWEST_NODES)
    fitted = Features.fit("wl", graphs, torch.arange(graphs.num_nodes))
    assert sorted(fitted.names[:2]) == ["1(2)", "2(1,2)"]
    labelled = one_graph(PATH, ["C", "N", "C", "O"], copies=FEWEST_NODES)
    assert torch.equal(fitted(labelled), fitted(graphs))


def test_an_estimator_reads_the_labels_that_colors_start_from():
    """Paths whose middle is red or blue: nothing but colours tells them apart."""
    graphs, y = [], []
    for i in range(60):
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, {0: "grey", 1: ("red", "blue")[i % 2], 2: "grey"}, "paint")
        graphs.append(graph)
        y.append(i % 2)
    clf = KerGNNClassifier(features="wl", node_labels=["paint"], epochs=15, random_state=0)
    assert clf.fit(graphs, y).score(graphs, y) == 1


def test_of_many_colors_the_most_frequent_are_columns():
    """Stars of 1 to 600 leaves: each gives a colour to its leaves, after two rounds."""
    edges, start = [], 0
    for leaves in range(1, MOST_COLORS + 90):
        edges += [(start, start + i) for i in range(1, leaves + 1)]
        start += leaves + 1
    graphs = one_graph(torch.tensor(edges).T, num_nodes=start)
    fitted = Features.fit("wl", graphs, torch.arange(start))
    rounds = [k for k, _, _ in fitted.parts[0].colors]
    assert [rounds.count(k) for k in (1, 2)] == [MOST_COLORS] * 2
    assert fitted.names[0] == "1(601)"
    assert "1(89)" not in fitted.names


def test_long_names_are_cut_and_told_apart():
    edges = [(0, i) for i in range(1, 30)] + [(i, 29 + i) for i in range(1, 20)]
    graphs = one_graph(torch.tensor(edges).T, num_nodes=49, copies=FEWEST_NODES)
    names = Features.fit("wl", graphs, torch.arange(graphs.num_nodes)).names
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 72
