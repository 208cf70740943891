import json

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kergnn.data import Features, GraphSet
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
    for k, numbers in enumerate(node_colors(graphs), start=1):
        unfolded = [unfolded_color(adjacency, start, v, k) for v in range(num_nodes)]
        alike = [[a == b for b in unfolded] for a in unfolded]
        assert (numbers[:, None] == numbers[None, :]).tolist() == alike


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
    fewer = Features.fit("wl", graphs, torch.arange(graphs.num_nodes - 4))  # 19 of each
    assert fewer.names == []
    assert fewer(graphs).shape == (graphs.num_nodes, 0)


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


def test_of_many_colors_the_most_frequent_are_columns():
    """Stars of 1 to 600 leaves: each gives a colour to its leaves, after two rounds."""
    edges, start = [], 0
    for leaves in range(1, MOST_COLORS + 90):
        edges += [(start, start + i) for i in range(1, leaves + 1)]
        start += leaves + 1
    graphs = one_graph(torch.tensor(edges).T, num_nodes=start)
    fitted = Features.fit("wl", graphs, torch.arange(start))
    assert [sum(color[0] == k for color in fitted.colors) for k in (1, 2)] == [MOST_COLORS] * 2
    assert fitted.names[0] == "1(601)"
    assert "1(89)" not in fitted.names


def test_long_names_are_cut_and_told_apart():
    edges = [(0, i) for i in range(1, 30)] + [(i, 29 + i) for i in range(1, 20)]
    graphs = one_graph(torch.tensor(edges).T, num_nodes=49, copies=FEWEST_NODES)
    names = Features.fit("wl", graphs, torch.arange(graphs.num_nodes)).names
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 72
