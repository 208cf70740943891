import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from kergnn.data import DataError, Features, GraphSet, default_recipe
from kergnn.testing import enumerated_returns


def toy(**changes):
    """A path of three nodes and a single node; labels C, O, C, N; attributes 0/1 and real."""
    values = {
        "name": "toy",
        "task": "graph",
        "size": torch.tensor([3, 1]),
        "edge_index": torch.tensor([[0, 1, 1, 1], [1, 2, 0, 1]]),
        "y": torch.tensor([0, 1]),
        "class_names": ("a", "b"),
        "labels": torch.tensor([[0], [2], [0], [1]]),
        "label_names": (("C", "N", "O"),),
        "attributes": torch.tensor([[0.0, 2], [1, 4], [0, 6], [1, 100]]),
        **changes,
    }
    return GraphSet(**values)


TRAIN = torch.tensor([0, 1, 2])


def test_recipes_have_their_columns():
    graphs = toy()
    made = {
        r: Features.fit(r, graphs, TRAIN) for r in ("label", "degree", "onehot-degree", "const")
    }
    assert made["label"](graphs).tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert made["degree"](graphs).tolist() == [[1], [2], [1], [0]]
    assert made["onehot-degree"](graphs).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert made["const"](graphs).tolist() == [[1]] * 4
    assert made["label"].names == ["C", "N", "O"]


def test_attributes_are_standardised_on_the_training_part_only():
    x = Features.fit("attr", toy(), TRAIN)(toy())
    assert x[:, 0].tolist() == [0, 1, 0, 1]  # zeros and ones stay
    torch.testing.assert_close(x[:3, 1].mean(), torch.tensor(0.0))
    torch.testing.assert_close(x[:3, 1].std(correction=0), torch.tensor(1.0))
    assert x[3, 1] > 50  # the test node did not enter mean and deviation


def test_recipes_compose_in_the_given_order():
    features = Features.fit("degree+label+attr", toy(), TRAIN)
    assert features.names == ["degree", "C", "N", "O", "attr0", "attr1"]
    assert features(toy()).shape == (4, 6)


def test_a_constant_attribute_does_not_divide_by_zero():
    graphs = toy(attributes=torch.full((4, 1), 7.0))
    assert Features.fit("attr", graphs, TRAIN)(graphs).tolist() == [[0]] * 4


def test_degrees_beyond_the_training_part_count_as_its_largest():
    features = Features.fit("onehot-degree", toy(), torch.tensor([0, 3]))
    assert features(toy())[1].tolist() == [0, 1]


def test_defaults_take_what_there_is():
    assert default_recipe(toy()) == "label+attr"
    assert default_recipe(toy(attributes=None)) == "label"
    assert default_recipe(toy(labels=None)) == "attr"
    assert default_recipe(toy(labels=None, attributes=None)) == "degree"


def test_fitted_features_survive_json():
    features = Features.fit("label+attr+onehot-degree", toy(), TRAIN)
    again = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert again == features
    assert torch.equal(again(toy()), features(toy()))


def test_labels_are_matched_by_name_not_by_number():
    features = Features.fit("label", toy(), TRAIN)
    other = toy(labels=torch.tensor([[0], [1], [0], [0]]), label_names=(("N", "O"),))
    assert features(other).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_columns_are_matched_by_name_not_by_position():
    labels = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]])
    attributes = torch.tensor([[1.0, 2, 30], [4, 5, 60], [7, 9, 90], [8, 0, 10]])
    graphs = toy(
        labels=labels,
        label_names=(("C", "O"), ("no", "yes")),
        label_columns=("element", "ring"),
        attributes=attributes,
        attribute_columns=("size", "place", "place"),
    )
    turned = toy(
        labels=labels[:, [1, 0]],
        label_names=(("no", "yes"), ("C", "O")),
        label_columns=("ring", "element"),
        attributes=attributes[:, [1, 2, 0]],
        attribute_columns=("place", "place", "size"),
    )
    features = Features.fit("label+attr", graphs, TRAIN)
    assert torch.equal(features(turned), features(graphs))
    nameless = replace(graphs, label_columns=(), attribute_columns=("attr",) * 3)
    assert torch.equal(features(nameless), features(graphs))
    other = replace(graphs, attribute_columns=("size", "place", "mass"))
    with pytest.raises(DataError, match="has size, place, mass a node, the model needs size, pl"):
        features(other)


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        (
            "label",
            {"label_names": (("C", "N", "Xx"),)},
            "graph 0 has node label 'Xx', which the model does not know",
        ),
        ("label", {"labels": None}, "toy has 0 node labels a node, the model needs 1"),
        (
            "attr",
            {"attributes": torch.ones(4, 3)},
            "toy has 3 attributes a node, the model needs 2",
        ),
        ("attr", {"attributes": None}, "toy has 0 attributes a node"),
    ],
)
def test_graphs_that_do_not_fit_are_refused(recipe, changes, message):
    features = Features.fit(recipe, toy(), TRAIN)
    with pytest.raises(DataError, match=message):
        features(toy(**changes))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("labels", r"'labels' \(did you mean label\?\) is not one of label, attr, degree"),
        ("label+", "'' is not one of"),
        ("Lable", r"\(did you mean label\?\).*const \(join several by \+, without blanks\)"),
        ("label + degree", r"'label ' \(did you mean label\?\) is not one of"),
        ("label+label", "'label' is there twice"),
    ],
)
def test_unknown_recipes_are_named(recipe, message):
    with pytest.raises(DataError, match=message):
        Features.fit(recipe, toy(), TRAIN)
    with pytest.raises(DataError, match="toy has no node labels"):
        Features.fit("label", toy(labels=None), TRAIN)


def test_walks_are_the_standardised_return_probabilities():
    """Against every walk listed, on a random graph with a node on its own."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 6, (2, 9), generator=generator)
    graphs = GraphSet(
        name="walks",
        task="graph",
        size=torch.tensor([7, 3]),
        edge_index=torch.cat([edges, torch.tensor([[7, 8, 9], [8, 9, 7]])], 1),
        y=torch.tensor([0, 1]),
        class_names=("a", "b"),
    )
    adjacency = torch.zeros(10, 10, dtype=torch.long)
    adjacency[tuple(graphs.simple_edges)] = 1
    expected = torch.stack([enumerated_returns(adjacency, steps) for steps in range(2, 7)], 1)
    torch.testing.assert_close(graphs.return_probability[:, :5], expected, rtol=1e-12, atol=1e-12)
    assert graphs.return_probability.shape == (10, 11)
    assert graphs.return_probability[6].eq(0).all()
    # A walk in a triangle: half of the ways back after two steps, a quarter after three.
    assert graphs.return_probability[7, :2].tolist() == pytest.approx([0.5, 0.25])

    train = torch.arange(7)
    features = Features.fit("walks", graphs, train)
    x = features(graphs)
    torch.testing.assert_close(x[train].mean(0), torch.zeros(11), atol=1e-6, rtol=0)
    assert features.names[0] == "back after 2"
    stored = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert torch.equal(stored(graphs), x)


def test_long_returns_are_powers_of_the_walk_matrix():
    graphs = toy()
    matrix = torch.zeros(4, 4, dtype=torch.float64)
    matrix[tuple(graphs.simple_edges)] = 1
    matrix = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    for column, steps in enumerate(range(2, 13)):
        expected = torch.linalg.matrix_power(matrix, steps).diagonal()
        torch.testing.assert_close(graphs.return_probability[:, column], expected)


def test_values_of_edges_become_features_of_both_directions():
    """Entries are 0-1, 1-2, 1-0 and a loop; 1-0 says other than 0-1, 2-1 is not there."""
    values = {
        "bond": np.array(["double", "single", "triple", "loop"], dtype=object),
        "length": np.array([0.5, 1.5, 2.5, 3.5]),
    }
    graphs = toy(edge_values=values)
    assert graphs.simple_edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs.simple_entries.tolist() == [0, 2, 1, 1]
    features = Features.fit("label", graphs, TRAIN)
    features = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert features.edge_names == (("bond", ("double", "loop", "single", "triple")),)
    assert features.edge_channels == 4
    expected = [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]]
    assert features.of_edges(graphs).tolist() == expected
    assert Features.fit("label", toy(), TRAIN).of_edges(graphs) is None


def test_values_of_edges_that_are_missing_or_unknown():
    bonds = toy(edge_values={"bond": np.array([2, 1, 1, 1])})
    features = Features.fit("label", bonds, TRAIN)
    some = toy(edge_values={"bond": np.array([2, None, 3, None], dtype=object)})
    with pytest.raises(DataError, match="toy has edges with bond '3', which the model does not"):
        features.of_edges(some)
    with pytest.warns(UserWarning, match="bond '3', which the model does not know; it knows 1, 2"):
        made = features.of_edges(some, "zeros")
    assert made.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    with pytest.raises(DataError, match="toy has no 'bond' of edges, which the model needs"):
        features.of_edges(toy())
    with pytest.warns(UserWarning, match="toy has no 'bond' of edges"):
        assert features.of_edges(toy(), "zeros").tolist() == [[0, 0]] * 4
    with pytest.raises(ValueError, match="unknown is 'zero': it must be one of 'error', 'zeros'"):
        features(toy(), "zero")
    for column in ([None] * 4, [0.5, None, 1.5, 2.5]):  # nothing, and measures
        values = {"bond": np.array(column, dtype=object)}
        assert Features.fit("label", toy(edge_values=values), TRAIN).edge_names == ()


def test_neighbors_are_the_rows_of_the_adjacency_matrix():
    """Loops, double edges and directions do not count, and a node alone has no neighbours."""
    graphs = toy(size=torch.tensor([4]), y=torch.tensor([0]))
    features = Features.fit("attr+neighbors", graphs, TRAIN)
    wanted = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert features(graphs)[:, 2:].tolist() == wanted
    assert features.names[2:] == [f"neighbor {node}" for node in range(4)]
    again = Features.from_dict(json.loads(json.dumps(features.to_dict())))
    assert torch.equal(again(graphs), features(graphs))


def test_neighbors_belong_to_one_graph():
    with pytest.raises(DataError, match="single graph, and toy has 2"):
        Features.fit("neighbors", toy(), TRAIN)
    graphs = toy(size=torch.tensor([4]), y=torch.tensor([0]))
    features = Features.fit("neighbors", graphs, TRAIN)
    smaller = toy(
        size=torch.tensor([3]),
        y=torch.tensor([0]),
        labels=torch.zeros(3, 1, dtype=torch.long),
        attributes=torch.zeros(3, 2),
    )
    with pytest.raises(DataError, match=r"1 graphs and 3 nodes: .* one graph of 4 nodes"):
        features(smaller)
    with pytest.raises(DataError, match="2 graphs and 4 nodes"):
        features(toy())


def star(num_leaves):
    """Return a star; its centre is node 0."""
    leaves = torch.arange(1, num_leaves + 1)
    edge_index = torch.stack([torch.zeros_like(leaves), leaves])
    return GraphSet(
        name="star", task="graph", size=torch.tensor([num_leaves + 1]), edge_index=edge_index,
        y=torch.tensor([0]), class_names=("a",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("degree", "column"),
    [(0, 0), (1, 1), (3, 3), (4, 4), (5, 4), (6, 5), (7, 5), (8, 6), (11, 6), (12, 7), (15, 7),
     (16, 8), (22, 8), (23, 9), (31, 9), (32, 10), (33, 10), (1000, 10)],
)  # fmt: skip
def test_degrees_are_binned_by_half_octaves(degree, column):
    """Bin k begins at the root of 2^k; degrees beyond the training part are in the last one."""
    fitted = Features.fit("binned-degree", star(32), torch.arange(33))
    assert len(fitted.names) == 11
    row = fitted(star(degree))[0]
    assert row.sum() == 1
    assert row.argmax() == column
    assert column < 4 or degree > 32 or column == math.floor(2 * math.log2(degree))


def test_bins_of_degrees_are_named():
    fitted = Features.fit("binned-degree", star(7), torch.arange(8))
    names = [*(f"degree={i}" for i in range(4)), "degree 4 to 5", "degree 6 or more"]
    assert fitted.names == names
    assert Features.fit("binned-degree", star(7), torch.tensor([], dtype=torch.long)).names == [
        "degree 0 or more"
    ]
    assert fitted.is_one_hot
    assert Features.from_dict(fitted.to_dict()) == fitted
