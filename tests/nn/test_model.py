import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GIN, global_add_pool

from kergnn import EgoGraphs, EgoSubgraphs, KerGNN
from kergnn.nn.readout import log_proportion
from kergnn.testing import assert_permutation_invariant, random_graph

SIZES = [5, 1, 7, 0]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def graphs(transform):
    made = []
    for seed, num_nodes in enumerate(SIZES):
        x, edge_index = random_graph(num_nodes, seed=seed)
        made.append(transform(Data(x=x, edge_index=edge_index, num_nodes=num_nodes)))
    return made


def predict(net, data_list):
    batch = Batch.from_data_list(data_list)
    return net(batch.x, EgoGraphs.from_data(batch), batch.batch, batch.num_graphs)


@pytest.mark.parametrize("readout", ["sum", "mean", "log"])
def test_a_batch_gives_what_each_graph_gives_alone_in_any_order(readout):
    net = KerGNN(3, 8, 2, num_hops=2, readout=readout).double().eval()
    data = graphs(EgoSubgraphs(2))
    together = predict(net, data)
    assert together.shape == (4, 2)  # the last graph is empty and still there
    alone = torch.cat([predict(net, [g]) for g in data])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)
    order = [2, 0, 3, 1]
    shuffled = predict(net, [data[i] for i in order])
    torch.testing.assert_close(shuffled, together[order], rtol=1e-9, atol=1e-9)


def test_readout_concatenates_every_layer_from_the_input_on():
    x, edge_index = random_graph(6, seed=1)
    net = KerGNN(3, 4, 2, num_layers=2, norm=None).double()
    net.head = torch.nn.Identity()
    features = net.node_features(x, edge_index)
    assert [f.shape for f in features] == [(6, 3), (6, 4), (6, 4)]
    assert torch.equal(features[0], x)
    expected = torch.cat([f.sum(0) for f in features])
    torch.testing.assert_close(net(x, edge_index)[0], expected)
    net.readout = "mean"
    torch.testing.assert_close(net(x, edge_index)[0], expected / 6)
    net.readout = "log"
    assert (expected < 0).any()
    assert (expected == 0).any()
    log = torch.log(1 + expected.abs()) * expected.sign()
    torch.testing.assert_close(net(x, edge_index)[0], log)


def test_the_slope_of_the_log_readout_is_right_at_zero_too():
    s = torch.tensor([-3.0, -1e-9, 0.0, 1e-9, 1e-5, 5.0], dtype=torch.double, requires_grad=True)
    torch.autograd.backward((s * log_proportion(s)).sum())
    torch.testing.assert_close(s.grad, 1 / (1 + s.detach().abs()), rtol=1e-12, atol=1e-12)
    half = torch.tensor([1e-5, 1e-3], dtype=torch.half, requires_grad=True)
    torch.autograd.backward((half * log_proportion(half)).sum())
    assert half.grad.isfinite().all()


def test_a_node_model_has_one_output_a_node():
    x, edge_index = random_graph(9, 0.3, seed=2)
    net = KerGNN(3, 4, 5, task="node", input_channels=6).double().eval()
    assert net(x, edge_index).shape == (9, 5)
    assert_permutation_invariant(net, x, edge_index)


def test_a_graph_model_ignores_the_order_of_nodes():
    x, edge_index = random_graph(9, 0.3, seed=3)
    net = KerGNN(3, 4, 5, kernel={"rw": 2, "drw": 1, "gcn": 1}, num_layers=3).double().eval()
    assert_permutation_invariant(net, x, edge_index)


def test_a_model_tells_a_hexagon_from_two_triangles_and_gin_does_not():
    x = torch.ones(6, 2)
    hexagon = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    net, gin = KerGNN(2, 8, 2).eval(), GIN(2, 8, num_layers=3).eval()
    assert (net(x, hexagon) - net(x, triangles)).abs().max() > 1e-3
    both = [torch.cat([e, e.flip(0)], dim=1) for e in (hexagon, triangles)]
    pooled = [global_add_pool(gin(x, e), None) for e in both]
    torch.testing.assert_close(*pooled, rtol=0, atol=1e-6)


def test_an_edge_index_is_cut_as_the_model_says():
    x, edge_index = random_graph(12, 0.5, seed=5)
    net = KerGNN(3, 4, 2, num_hops=2, max_nodes=5).double().eval()
    ego = EgoGraphs.from_edge_index(edge_index, 12, num_hops=2, max_nodes=5)
    assert torch.equal(net(x, edge_index), net(x, ego))
    whole = EgoGraphs.from_edge_index(edge_index, 12, num_hops=2)
    assert not torch.equal(net(x, ego), net(x, whole))


def test_layers_are_followed_by_relu_and_dropout():
    x, edge_index = random_graph(40, 0.2, seed=6)
    net = KerGNN(3, 16, 2, dropout=0.5, input_dropout=0.5).double()
    first, *layers = net.node_features(x, edge_index)
    assert 0.3 < (first == 0).double().mean() < 0.7
    for layer in layers:
        assert (layer >= 0).all()
        assert (layer == 0).double().mean() > 0.6  # half by ReLU, half of the rest by dropout
    net.eval()
    assert torch.equal(net.node_features(x, edge_index)[0], x)


def test_dropout_is_off_in_evaluation():
    x, edge_index = random_graph(8, seed=4)
    net = KerGNN(3, 8, 2, dropout=0.5, norm=None).double()
    assert not torch.equal(net(x, edge_index), net(x, edge_index))
    net.eval()
    assert torch.equal(net(x, edge_index), net(x, edge_index))


def test_one_small_graph_can_be_trained_on():
    """A batch of one graph with one node has no variance; it must not stop the training."""
    net = KerGNN(3, 4, 2)
    assert net(torch.ones(1, 3), torch.zeros(2, 0, dtype=torch.long)).isfinite().all()


def test_layers_may_have_filters_of_different_sizes():
    net = KerGNN(3, 4, 2, num_layers=3, filter_size=[6, 4, 2])
    assert [conv.filters()[0].shape[1] for conv in net.convs] == [6, 4, 2]


def test_reset_parameters_changes_every_weight_matrix():
    net = KerGNN(3, 4, 2, input_channels=5)
    before = {name: p.detach().clone() for name, p in net.named_parameters() if p.dim() > 1}
    net.reset_parameters()
    for name, parameter in net.named_parameters():
        assert name not in before or not torch.equal(before[name], parameter), name


def test_a_small_model_fits_graphs_that_differ_in_structure_only():
    """Cliques against stars, all features equal: trained to certainty in a few steps."""
    data, labels = [], []
    for n in range(4, 10):
        clique = torch.combinations(torch.arange(n)).T
        star = torch.stack([torch.zeros(n - 1, dtype=torch.long), torch.arange(1, n)])
        for label, edge_index in enumerate((clique, star)):
            data.append(EgoSubgraphs()(Data(x=torch.ones(n, 1), edge_index=edge_index)))
            labels.append(label)
    net, target = KerGNN(1, 8, 2, num_layers=1), torch.tensor(labels)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(predict(net, data), target)
        loss.backward()
        optimizer.step()
    assert loss < 0.05
    assert (predict(net.eval(), data).argmax(1) == target).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 0}, "num_layers is 0"),
        ({"hidden_channels": 0}, "hidden_channels is 0"),
        ({"filter_size": [6, 4, 2]}, "one for each of the 2 layers"),
        ({"norm": "instance"}, "norm is 'instance'"),
        ({"readout": "max"}, "readout is 'max': it must be one of 'sum', 'mean'"),
        ({"task": "edge"}, "task is 'edge'"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"kernel": "wl"}, "kernel is 'wl'"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        KerGNN(**{"in_channels": 3, "hidden_channels": 4, "out_channels": 2, **options})


def test_bad_batches_are_named():
    x, edge_index = random_graph(4)
    net = KerGNN(3, 4, 2).double()
    batch = torch.tensor([0, 0, 1, 2])
    with pytest.raises(ValueError, match="num_graphs is missing"):
        net(x, edge_index, batch)
    with pytest.raises(ValueError, match="num_graphs is 4: without batch it must be 1"):
        net(x, edge_index, None, 4)
    with pytest.raises(ValueError, match="batch must be a tensor of integers"):
        net(x, edge_index, batch.float(), 3)
    with pytest.raises(ValueError, match=r"num_graphs is 1\.5"):
        net(x, edge_index, batch, 1.5)
    with pytest.raises(ValueError, match="batch reaches from 0 to 2"):
        net(x, edge_index, batch, 2)
    with pytest.raises(ValueError, match=r"batch has shape \(3,\)"):
        net(x, edge_index, batch[:3], 3)
    with pytest.raises(ValueError, match=r"x has shape \(4, 2\)"):
        net(x[:, :2], edge_index)
