import networkx as nx
import pytest
import torch

from kergnn import KerGNN
from kergnn.explain import filter_graphs, group_isomorphic


def set_filter(conv, index, edges, attributes=None):
    """Give one filter the edges {(a, b): weight} and nothing else."""
    group = conv.groups[0]
    row, col = torch.triu_indices(group.filter_size, group.filter_size, 1).tolist()
    with torch.no_grad():
        weights = [edges.get((a, b), -0.3) for a, b in zip(row, col, strict=True)]
        group.edge_weight[index] = torch.tensor(weights)
        if attributes is not None:
            group.attributes[index] = torch.as_tensor(attributes, dtype=torch.float)


def make(**options):
    torch.manual_seed(0)
    options = {"hidden_channels": 3, "filter_size": 4, "num_layers": 2, **options}
    return KerGNN(in_channels=3, out_channels=2, **options)


def test_edges_below_the_threshold_and_nodes_without_edges_go():
    model = make()
    set_filter(model.convs[0], 1, {(0, 1): 1.0, (1, 3): 0.6, (2, 3): 0.4})
    for threshold, edges in (
        (0.0, {(0, 1), (1, 3), (2, 3)}),  # negative weights were cut by ReLU
        (0.5, {(0, 1), (1, 3)}),
        (0.6, {(0, 1), (1, 3)}),
        (1.0, {(0, 1)}),
    ):
        graph = filter_graphs(model, threshold)[0][1]
        assert set(graph.edges()) == edges
        assert set(graph) == {node for edge in edges for node in edge}
    assert graph.edges[0, 1]["weight"] == 1.0
    assert [len(layer) for layer in filter_graphs(model)] == [3, 3]


def test_a_filter_whose_edges_are_all_dead_is_empty():
    model = make()
    set_filter(model.convs[0], 0, {})
    assert filter_graphs(model, 0.0)[0][0].number_of_nodes() == 0


def test_labels_are_those_a_node_is_most_alike():
    model = make()
    attributes = [[0.1, 2.0, 0.0], [0.0, -1.0, 0.5], [0.4, 0.0, 0.2], [0.0, 0.0, 1.0]]
    ring = {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (0, 3): 1.0}
    set_filter(model.convs[0], 0, ring, attributes)
    set_filter(model.convs[0], 1, ring, [[-v for v in row] for row in attributes])
    first, second, *_ = filter_graphs(model, names=["C", "N", "O"])[0]
    for graph in (first, second):  # rw is quadratic in the attributes: one sign is none
        assert [graph.nodes[n]["label"] for n in range(4)] == ["N", "N", "C", "O"]
        assert [graph.nodes[n]["sign"] for n in range(4)] == [1, -1, 1, 1]
        norms = torch.tensor(attributes).norm(dim=1)
        strength = [graph.nodes[n]["strength"] for n in range(4)]
        assert strength == pytest.approx((norms / norms.max()).tolist())
    assert "label" not in filter_graphs(model, names=["C", "N", "O"])[1][0].nodes[0]
    assert "label" not in filter_graphs(model)[0][0].nodes[0]


def test_labels_that_are_rare_in_the_data_count_little():
    model = make()
    attributes = [[0.5, 2.0, 0.0], [0.0, -1.0, 3.0], [-0.4, 0.0, 0.2], [0.0, 0.0, 1.0]]
    path = {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0}
    set_filter(model.convs[0], 0, path, attributes)
    graph = filter_graphs(model, 0.5, ["C", "N", "O"], frequency=[0.96, 0.04, 0.0])[0][0]
    assert [graph.nodes[n]["label"] for n in range(4)] == ["C", "N", "C", "C"]
    assert [graph.nodes[n]["sign"] for n in range(3)] == [1, -1, -1]
    first = (0.96 * 0.25 + 0.04 * 4) ** 0.5
    assert graph.nodes[1]["strength"] == pytest.approx(0.2 / first)
    assert graph.nodes[3]["strength"] == 0
    with pytest.raises(ValueError, match="frequency must have one entry for each of names"):
        filter_graphs(model, names=["C", "N", "O"], frequency=[1.0])


def test_labels_see_through_the_input_map():
    """The attributes of a node are its similarities with nodes of every label."""
    model = make(input_channels=5)
    graph = filter_graphs(model, 0.0, ["C", "N", "O"])[0][0]
    mapped = model.input_map(torch.eye(3))
    similarity = (model.convs[0].filters()[1][0] @ mapped.T).detach()
    found = torch.tensor([graph.nodes[n]["attributes"] for n in graph])
    torch.testing.assert_close(found.abs(), similarity[list(graph)].abs())
    assert float(found.flatten()[found.abs().argmax()]) > 0


def test_a_sign_counts_where_the_kernel_is_not_quadratic():
    model = make(kernel="rw-step")
    with torch.no_grad():
        model.convs[0].groups[0].attributes.fill_(-1.0)
    assert filter_graphs(model, 0.0, ["C", "N", "O"])[0][0].nodes[0]["sign"] == -1


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_a_threshold_is_a_part_of_the_largest_weight(threshold):
    with pytest.raises(ValueError, match=r"threshold is .*: it must be from 0 to 1"):
        filter_graphs(make(), threshold)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="names has 2 entries: it must have one for each of the 3"):
        filter_graphs(make(), names=["C", "N"])
    with pytest.raises(ValueError, match="model is a Linear: it must be a KerGNN"):
        filter_graphs(torch.nn.Linear(2, 2))


def test_equal_shapes_are_grouped_whatever_the_order_of_their_nodes():
    path, star, ring = nx.path_graph(4), nx.star_graph(3), nx.cycle_graph(4)
    mixed = nx.relabel_nodes(path, {0: 2, 1: 0, 2: 3, 3: 1})
    groups = group_isomorphic([path, star, mixed, ring, nx.path_graph(4), nx.star_graph(3)])
    assert groups == [[0, 2, 4], [1, 5], [3]]
