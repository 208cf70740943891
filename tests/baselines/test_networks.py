"""What every network must do, whatever it is."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.utils import coalesce

from kergnn.baselines import baseline_names, get_baseline
from kergnn.testing import assert_permutation_invariant, random_graph

GRAPH = [n for n in baseline_names("graph") if get_baseline(n).kind == "network"]
NODE = [n for n in baseline_names("node") if get_baseline(n).kind == "network"]
# Small, and without dropout, so that training is quick and can be compared.
SMALL = {"dgcnn": {"sort_size": 10}, "diffpool": {"num_clusters": 4}, "gat": {"heads": 4}}

# (number of nodes, probability of an edge): single node, no edges, dense, and empty at the end.
CASES = [(5, 0.6), (1, 0.0), (4, 0.0), (7, 0.4), (3, 1.0), (0, 0.0)]


def build(name, **changes):
    torch.manual_seed(0)
    options = {"dropout": 0.0, **SMALL.get(name, {}), **changes}
    return get_baseline(name).load()(3, 8, 2, **options).double()


def graph(num_nodes, probability, seed=0):
    x, edge_index = random_graph(num_nodes, probability, seed)
    return x, coalesce(edge_index, num_nodes=num_nodes)


def union(graphs):
    """Return x, edge_index, batch and num_graphs of several graphs."""
    sizes = [len(x) for x, _ in graphs]
    first = [sum(sizes[:i]) for i in range(len(sizes))]
    edges = [e + f for (_, e), f in zip(graphs, first, strict=True)]
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.cat([x for x, _ in graphs]), torch.cat(edges, dim=1), batch, len(sizes)


def cases():
    return [graph(n, p, seed) for seed, (n, p) in enumerate(CASES)]


def assert_every_parameter_has_a_gradient(net, out):
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    (out * weights).sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert parameter.grad.isfinite().all(), f"the gradient of {name} is not finite"
        assert parameter.grad.abs().max() > 1e-9, f"the gradient of {name} is zero"


def fit(net, inputs, y, num_steps=150):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(num_steps):
        optimizer.zero_grad()
        cross_entropy(net(*inputs), y).backward()
        optimizer.step()
    net.eval()
    return (net(*inputs).argmax(1) == y).double().mean().item()


@pytest.mark.parametrize("name", GRAPH)
def test_a_batch_gives_what_each_graph_gives_alone(name):
    net = build(name).eval()
    together = net(*union(cases()))
    assert together.shape == (len(CASES), 2)
    alone = torch.cat([net(*union([g])) for g in cases()])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GRAPH)
@pytest.mark.parametrize("training", [True, False])
def test_graphs_without_nodes_or_edges_give_finite_rows(name, training):
    net = build(name).train(training)
    assert net(*union(cases())).isfinite().all()
    x, edge_index = graph(0, 0.0)
    empty = torch.zeros(0, dtype=torch.long)
    assert net(x, edge_index, empty, 3).isfinite().all()
    assert net(*union([graph(3, 0.0)])).isfinite().all()


@pytest.mark.parametrize("name", GRAPH)
def test_every_parameter_of_a_graph_network_is_used(name):
    net = build(name)
    assert_every_parameter_has_a_gradient(net, net(*union(cases())))


@pytest.mark.parametrize("name", GRAPH)
def test_a_network_can_be_copied_while_it_is_trained(name):
    net = build(name)
    net(*union(cases())).sum().backward()
    again = copy.deepcopy(net)
    assert torch.equal(again.eval()(*union(cases())), net.eval()(*union(cases())))


class OneGraph(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, edge_index):
        edge_index = coalesce(edge_index, num_nodes=len(x))
        return self.net(x, edge_index, torch.zeros(len(x), dtype=torch.long), 1)


@pytest.mark.parametrize("name", GRAPH)
def test_a_graph_network_ignores_the_order_of_nodes(name):
    net = OneGraph(build(name).eval())
    for seed in range(3):
        assert_permutation_invariant(net, *graph(12, 0.3, seed), seed=seed)


@pytest.mark.parametrize("name", GRAPH)
def test_a_graph_network_learns_a_separable_set(name):
    """Complete graphs of one feature against paths of another one."""
    graphs, y = [], []
    for size in range(3, 9):
        path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        for label, edges in enumerate([path, torch.combinations(torch.arange(size)).T]):
            x = torch.zeros(size, 3, dtype=torch.double)
            x[:, label] = 1.0
            graphs.append((x, coalesce(torch.cat([edges, edges.flip(0)], dim=1))))
            y.append(label)
    assert fit(build(name), union(graphs), torch.tensor(y)) == 1.0


@pytest.mark.parametrize("name", NODE)
def test_every_parameter_of_a_node_network_is_used(name):
    net = build(name)
    x, edge_index = graph(30, 0.1, seed=1)
    assert_every_parameter_has_a_gradient(net, net(x, edge_index))


@pytest.mark.parametrize("name", NODE)
def test_nodes_without_edges_give_finite_rows(name):
    for training in (True, False):
        net = build(name).train(training)
        for num_nodes, probability in CASES:
            out = net(*graph(num_nodes, probability))
            assert out.shape == (num_nodes, 2)
            assert out.isfinite().all()


@pytest.mark.parametrize("name", [n for n in NODE if n != "geomgcn"])  # its plane knows no order
def test_a_node_network_renumbers_with_the_nodes(name):
    assert_permutation_invariant(build(name).eval(), *graph(12, 0.3, seed=2))


@pytest.mark.parametrize("name", NODE)
def test_a_node_network_learns_a_separable_graph(name):
    """Two groups of nodes, many edges within and few between them."""
    x, edge_index = graph(30, 0.5, seed=3)
    y = torch.arange(30) % 2
    keep = y[edge_index[0]] == y[edge_index[1]]
    x[:, 0] = x[:, 0] * 0.1 + y
    assert fit(build(name), (x, edge_index[:, keep]), y) == 1.0
