import pytest
import torch
from torch_geometric.nn import GCNConv, GINConv, global_add_pool

from kergnn import EgoGraphs, KerGNNConv
from kergnn.kernels import random_walk
from kergnn.testing import assert_permutation_invariant, random_graph

KERNELS = ["rw", "rw-step", "drw", "gcn"]
MIXED = {"rw": 2, "drw": 3, "gcn": 1}

HEXAGON = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
TWO_TRIANGLES = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])


def both_ways(edge_index):
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_without_normalisation_the_output_is_the_kernel():
    x, edge_index = random_graph(8, seed=1)
    ego = EgoGraphs.from_edge_index(edge_index, 8)
    conv = KerGNNConv(3, 5, filter_size=4, num_steps=3, normalize=None).double()
    expected = random_walk(x, ego, *conv.filters(), 3).sum(0)
    torch.testing.assert_close(conv(x, ego), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("normalize", "function"),
    [
        ("size", lambda q: q),
        ("root", lambda q: q.sign() * ((q.abs() + 0.01).sqrt() - 0.1)),
        ("log", lambda q: q.sign() * (0.9 + (q.abs() + 0.01).sqrt()).log2()),
    ],
)
def test_named_normalisations_have_their_formula(normalize, function):
    x, edge_index = random_graph(8, 0.3, seed=2)
    ego = EgoGraphs.from_edge_index(edge_index, 8)
    conv = KerGNNConv(3, 5, 4, normalize=normalize, step_weights=[1, 0.5, -2]).double()
    q = random_walk(x, ego, *conv.filters(), 2) / (4 * ego.size.view(1, -1, 1))
    expected = function(q[0]) + 0.5 * function(q[1]) - 2 * function(q[2])
    torch.testing.assert_close(conv(x, ego), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [1, 2, 10, 100, 300])
def test_the_default_keeps_values_of_order_one(size, kernel):
    """Ten layers on a clique, the densest neighbourhood there is: neither dying nor exploding.

    Features have a mean, since gcn averages and would rightly make nothing of noise alone.
    """
    x = torch.randn(size, 16) + 1
    clique = torch.combinations(torch.arange(size)).T
    ego = EgoGraphs.from_edge_index(clique, size)
    for _ in range(10):
        x = KerGNNConv(16, 16, kernel=kernel)(x, ego).detach()
        assert 0.1 < x.pow(2).mean().sqrt() < 25


def test_an_edge_index_is_cut_as_the_layer_says():
    x, edge_index = random_graph(12, 0.5, seed=10)
    conv = KerGNNConv(3, 4, num_hops=2, max_nodes=5).double()
    ego = EgoGraphs.from_edge_index(edge_index, 12, num_hops=2, max_nodes=5)
    assert torch.equal(conv(x, edge_index), conv(x, ego))
    assert not torch.equal(conv(x, edge_index), KerGNNConv(3, 4).double()(x, edge_index))


@pytest.mark.parametrize("kernel", [*KERNELS, MIXED])
@pytest.mark.parametrize("update", [None, "linear", "mlp"])
def test_renumbering_the_nodes_renumbers_the_output(kernel, update):
    x, edge_index = random_graph(12, 0.3, seed=3)
    conv = KerGNNConv(3, 6, 3, kernel=kernel, update=update, num_hops=2).double()
    assert_permutation_invariant(conv, x, edge_index)


def test_assert_permutation_invariant_can_fail():
    class Ordered(torch.nn.Module):
        def forward(self, x, edge_index):
            return x * torch.arange(x.size(0)).unsqueeze(1)

    x, edge_index = random_graph(5)
    with pytest.raises(AssertionError, match=r"Ordered depends on the order of the nodes: error"):
        assert_permutation_invariant(Ordered(), x, edge_index)


@pytest.mark.parametrize("kernel", [*KERNELS, MIXED])
def test_every_parameter_receives_a_gradient(kernel):
    x, edge_index = random_graph(10, seed=4)
    walks = kernel != "gcn"
    conv = KerGNNConv(
        3, 6, kernel=kernel, update="mlp", step_weights="trainable" if walks else None
    ).double()
    conv(x, edge_index).pow(2).sum().backward()
    for name, parameter in conv.named_parameters():
        if parameter.numel():
            assert parameter.grad.abs().sum() > 0, name


def test_one_step_differs_from_none():
    x, edge_index = random_graph(8, seed=5)
    conv = KerGNNConv(3, 4, num_steps=0).double()
    longer = KerGNNConv(3, 4, num_steps=1).double()
    longer.groups.load_state_dict(conv.groups.state_dict())
    assert not torch.allclose(conv(x, edge_index), longer(x, edge_index))
    no_edges = edge_index[:, :0]
    torch.testing.assert_close(conv(x, no_edges), longer(x, no_edges))


@pytest.mark.parametrize("kernel", ["rw", "rw-step", "drw"])
@pytest.mark.parametrize("normalize", [None, "size", "root", "log"])
def test_a_hexagon_is_not_two_triangles(kernel, normalize):
    """1-WL and a GIN see no difference where all nodes look alike and have two neighbours."""
    x = torch.ones(6, 4)
    mlp = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    gin, batch = GINConv(mlp), torch.zeros(6, dtype=torch.long)
    same = [global_add_pool(gin(x, both_ways(e)), batch, size=1) for e in (HEXAGON, TWO_TRIANGLES)]
    assert torch.equal(*same)
    conv = KerGNNConv(4, 8, kernel=kernel, normalize=normalize)
    hexagon, triangles = (conv(x, e).sum(0) for e in (HEXAGON, TWO_TRIANGLES))
    assert (hexagon - triangles).abs().min() > 1e-3


def test_graphs_that_1_wl_tells_apart_are_told_apart():
    """A path and a star of four nodes."""
    x, conv = torch.ones(4, 4), KerGNNConv(4, 8)
    path, star = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([[0, 0, 0], [1, 2, 3]])
    assert (conv(x, path).sum(0) - conv(x, star).sum(0)).abs().min() > 1e-3


def test_with_the_gcn_kernel_the_layer_is_pygs_gcn():
    x, edge_index = random_graph(15, 0.2, seed=6)
    assert EgoGraphs.from_edge_index(edge_index, 15).size.min() == 1  # an isolated node is there
    conv = KerGNNConv(3, 7, kernel="gcn", normalize=None).double()
    reference = GCNConv(3, 7, bias=False).double()
    reference.lin.weight.data = conv.filters()[1].squeeze(1)
    torch.testing.assert_close(conv(x, edge_index), reference(x, edge_index), rtol=1e-6, atol=1e-6)


def test_mixed_kernels_are_the_single_ones_side_by_side():
    x, edge_index = random_graph(9, seed=7)
    conv = KerGNNConv(3, 6, 3, kernel=MIXED, normalize=None).double()
    out, column = conv(x, edge_index), 0
    for (kernel, count), group in zip(MIXED.items(), conv.groups, strict=True):
        single = KerGNNConv(3, count, 3, kernel=kernel, normalize=None).double()
        single.groups[0].load_state_dict(group.state_dict())
        torch.testing.assert_close(out[:, column : column + count], single(x, edge_index))
        column += count


def test_filters_are_graphs():
    conv = KerGNNConv(3, 6, filter_size=4, kernel=MIXED)
    torch.nn.init.normal_(conv.groups[0].edge_weight)
    adjacency, attributes = conv.filters()
    assert adjacency.shape == (6, 4, 4)
    assert attributes.shape == (6, 4, 3)
    assert torch.equal(adjacency, adjacency.transpose(1, 2))
    assert (adjacency >= 0).all()
    assert (adjacency.diagonal(dim1=1, dim2=2) == 0).all()
    assert (adjacency[0] > 0).any()
    assert (adjacency[-1] == 0).all()  # the one-node filter of gcn, filled up
    assert (attributes[-1, 1:] == 0).all()


def test_update_sees_the_nodes_own_features():
    x, edge_index = random_graph(6, seed=8)
    conv = KerGNNConv(3, 4, update="linear").double()
    plain = KerGNNConv(3, 4).double()
    plain.groups.load_state_dict(conv.groups.state_dict())
    weight, bias = conv.update[0].weight, conv.update[0].bias
    expected = torch.cat([x, plain(x, edge_index)], dim=1) @ weight.T + bias
    torch.testing.assert_close(conv(x, edge_index), expected)


def test_reset_parameters_draws_new_ones_and_keeps_given_step_weights():
    conv = KerGNNConv(3, 4, update="mlp", step_weights="trainable")
    torch.nn.init.zeros_(conv.step_weight)
    before = {name: p.detach().clone() for name, p in conv.named_parameters()}
    conv.reset_parameters()
    for name, parameter in conv.named_parameters():
        assert not torch.equal(before[name], parameter), name
    assert conv.step_weight.tolist() == [1, 1, 1]


def test_state_dict_restores_the_output():
    x, edge_index = random_graph(6, seed=9)
    options = {"kernel": {"rw": 2, "drw": 2}, "step_weights": [1, 2, 3], "update": "linear"}
    conv, other = KerGNNConv(3, 4, **options).double(), KerGNNConv(3, 4, **options).double()
    other.load_state_dict(conv.state_dict())
    assert torch.equal(conv(x, edge_index), other(x, edge_index))


def test_repr_names_the_sizes():
    assert repr(KerGNNConv(3, 4)) == "KerGNNConv(3, 4, filter_size=6, num_steps=2, kernel='rw')"
    assert "kernel={'rw': 2, 'gcn': 2}" in repr(KerGNNConv(3, 4, kernel={"rw": 2, "gcn": 2}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_channels": 0}, "in_channels is 0: it must be an integer of at least 1"),
        ({"out_channels": -3}, "out_channels is -3"),
        ({"filter_size": 0}, "filter_size is 0"),
        ({"num_steps": -1}, "num_steps is -1: it must be an integer of at least 0"),
        ({"num_steps": True}, "num_steps is True"),
        ({"num_hops": -1}, "num_hops is -1"),
        ({"max_nodes": 0}, "max_nodes is 0"),
        ({"kernel": "walk"}, "kernel is 'walk': it must be one of 'drw'"),
        ({"kernel": {"rw": 3}}, "must add up to out_channels = 4"),
        ({"kernel": {"rw": 4, "drw": 0}}, r"kernel\['drw'\] is 0"),
        ({"normalize": "max"}, "normalize is 'max': it must be one of None, 'size'"),
        ({"update": "gru"}, "update is 'gru'"),
        ({"step_weights": [1, 2]}, r"num_steps \+ 1 = 3 finite numbers"),
        ({"step_weights": "learned"}, "step_weights is 'learned'"),
        ({"step_weights": "trainable", "kernel": "gcn"}, "'gcn' has no walks"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        KerGNNConv(**{"in_channels": 3, "out_channels": 4, **options})


def test_ego_graphs_of_the_wrong_kind_are_named():
    with pytest.raises(ValueError, match="ego is a list: it must be EgoGraphs or an edge index"):
        KerGNNConv(3, 4)(torch.ones(5, 3), [[0], [1]])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(5, 2), r"x has shape \(5, 2\): it must be \(N, in_channels\) = \(5, 3\)"),
        (torch.ones(4, 3), r"x has shape \(4, 3\)"),
        (torch.ones(5, 3).numpy(), "x is ndarray"),
        (torch.ones(5, 3, dtype=torch.long), "x is torch.int64"),
        (torch.tensor([[1.0, 2, 3]] * 4 + [[1, float("nan"), 3]]), r"x\[4, 1\] is nan"),
        (torch.full((5, 3), float("inf")), r"x\[0, 0\] is inf"),
    ],
)
def test_bad_features_are_named(x, message):
    ego = EgoGraphs.from_edge_index(torch.tensor([[0], [1]]), 5)
    with pytest.raises(ValueError, match=message):
        KerGNNConv(3, 4)(x, ego)
