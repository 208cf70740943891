"""The defining property of every network for graphs."""

import math
from itertools import combinations, pairwise

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GINConv, NNConv, SimpleConv
from torch_geometric.utils import coalesce

from kergnn.baselines import get_baseline, rwgnn
from kergnn.baselines.diffpool import DiffPool
from kergnn.baselines.ecc import ECC, ECConv
from kergnn.baselines.gckn import GCKN, _InverseRoot, find_paths
from kergnn.baselines.gckn_unsupervised import gram
from kergnn.baselines.gin import GIN
from kergnn.baselines.gnn123 import GNN123
from kergnn.baselines.graphsage import GraphSAGE
from kergnn.baselines.node_sets import node_sets
from kergnn.baselines.ppgn import PPGN, channel_product
from kergnn.baselines.rwgnn import RWGNN
from kergnn.baselines.structure_free import StructureFree
from kergnn.data import GraphSet
from kergnn.testing import kronecker_kernel, random_graph


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def undirected(*edges):
    index = torch.tensor(edges, dtype=torch.long).T
    return coalesce(torch.cat([index, index.flip(0)], dim=1))


HEXAGON = undirected((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0))
TRIANGLES = undirected((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3))


def graph(num_nodes, probability=0.4, seed=0):
    x, edge_index = random_graph(num_nodes, probability, seed)
    return x, coalesce(edge_index, num_nodes=num_nodes)


def one(num_nodes):
    return torch.zeros(num_nodes, dtype=torch.long), 1


def dense(edge_index, num_nodes):
    A = torch.zeros(num_nodes, num_nodes, dtype=torch.double)
    A[edge_index[0], edge_index[1]] = 1
    return A


def two_graphs():
    """Return x, edge_index, batch of a graph of 5 and one of 4 nodes, and the two alone."""
    (x, e), (x2, e2) = graph(5, 0.5, 1), graph(4, 0.7, 2)
    batch = torch.tensor([0] * 5 + [1] * 4)
    return torch.cat([x, x2]), torch.cat([e, e2 + 5], dim=1), batch, [(x, e), (x2, e2)]


def difference(name, **options):
    """Return how far apart a network puts a hexagon and two triangles, all nodes alike."""
    x = torch.ones(6, 2, dtype=torch.double)
    net = get_baseline(name).load()(2, 8, 2, **options).double().eval()
    return (net(x, HEXAGON, *one(6)) - net(x, TRIANGLES, *one(6))).abs().max().item()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gin", {}),
        ("graphsage", {"aggr": "mean"}),
        ("graphsage", {"aggr": "sum"}),
        ("graphsage", {"aggr": "max"}),
        ("ecc", {}),
        ("dgcnn", {}),
        ("structure-free", {}),
    ],
)
def test_message_passing_takes_two_triangles_for_a_hexagon(name, options):
    assert difference(name, **options) < 1e-12


def test_random_walks_over_the_whole_graph_take_two_triangles_for_a_hexagon():
    """All nodes alike, only numbers of walks count, and those are the same in both graphs."""
    assert difference("rwgnn", num_steps=4) < 1e-12


@pytest.mark.parametrize(
    ("name", "options"),
    [("123gnn", {"connected": True}), ("123gnn", {"connected": False}), ("ppgn", {})],
)
def test_higher_order_networks_tell_a_hexagon_from_two_triangles(name, options):
    assert difference(name, **options) > 1e-4


def test_paths_of_four_nodes_tell_a_hexagon_from_two_triangles():
    assert difference("gckn", path_size=4) > 1e-3
    assert difference("gckn", path_size=4, walks=True) < 1e-12


def test_structure_free_is_an_mlp_on_the_sum():
    x, edge_index, batch, _ = two_graphs()
    net = StructureFree(3, 8, 2, num_layers=2).double()
    expected = net.mlp(torch.stack([x[:5].sum(0), x[5:].sum(0)]))
    torch.testing.assert_close(net(x, edge_index, batch, 2), expected)


def test_gin_reads_out_every_layer_by_a_sum():
    x, edge_index, batch, _ = two_graphs()
    net = GIN(3, 4, 2, num_layers=2).double().eval()
    A = dense(edge_index, 9)
    for conv, eps in zip(net.convs, [0.3, -0.2], strict=True):
        nn.init.constant_(conv.eps, eps)
    h = [net.first(x)]
    h.append(net.convs[0].nn(1.3 * h[0] + A @ h[0]))
    h.append(net.convs[1].nn(0.8 * h[1] + A @ h[1]))
    expected = sum(
        head(torch.stack([layer[:5].sum(0), layer[5:].sum(0)]))
        for head, layer in zip(net.heads, h, strict=True)
    )
    torch.testing.assert_close(net(x, edge_index, batch, 2), expected)


@pytest.mark.parametrize("width", [1, 7, 64])
def test_gin_has_the_bits_of_pyg(width):
    x, edge_index = graph(40, 0.3)
    x = torch.randn(40, width)
    net = GIN(width, width, 2, num_layers=1).convs[0]
    peer = GINConv(net.nn, train_eps=True)  # it draws the weights anew, for both
    found = []
    for layer in (net, peer):
        nn.init.constant_(layer.eps, 0.3)
        h = x.clone().requires_grad_()
        out = layer(h, edge_index)
        out.square().sum().backward()
        found.append((out, h.grad, layer.eps.grad))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


def test_masks_of_explainers_take_edges_from_gin():
    x, edge_index, batch, _ = two_graphs()
    net = GIN(3, 4, 2, num_layers=2).double().eval()
    kept = torch.arange(edge_index.size(1)) % 3 > 0
    expected = net(x, edge_index[:, kept], batch, 2)
    set_masks(net, kept.double(), edge_index, apply_sigmoid=False)
    torch.testing.assert_close(net(x, edge_index, batch, 2), expected)
    clear_masks(net)
    assert (net(x, edge_index, batch, 2) - expected).abs().max() > 1e-3


def test_graphsage_adds_the_mean_of_neighbours_and_reads_out_the_maximum():
    x, edge_index, batch, _ = two_graphs()
    net = GraphSAGE(3, 4, 2, num_layers=2).double().eval()
    A = dense(edge_index, 9)
    A = A / A.sum(1, keepdim=True).clamp(min=1)
    h, layers = x, []
    for conv in net.convs:
        h = (conv.lin_l(A @ h) + conv.lin_r(h)).relu()
        layers.append(h)
    h = torch.cat(layers, dim=1)
    expected = net.head(torch.stack([h[:5].amax(0), h[5:].amax(0)]))
    torch.testing.assert_close(net(x, edge_index, batch, 2), expected)


def test_dgcnn_sorts_by_the_last_channel_and_keeps_the_first_nodes():
    net = get_baseline("dgcnn").load()(3, 4, 2, sort_size=10).double().eval()
    x, edge_index = graph(14, 0.3)
    net.convolutions, net.head = nn.Identity(), nn.Flatten()
    A = dense(edge_index, 14) + torch.eye(14)
    A = A / A.sum(1, keepdim=True)
    h, layers = x, []
    for linear in net.maps:
        h = torch.tanh(A @ linear(h))
        layers.append(h)
    h = torch.cat(layers, dim=1)
    expected = h[h[:, -1].argsort(descending=True)][:10]
    torch.testing.assert_close(net(x, edge_index, *one(14)).view(10, -1), expected)


def test_dgcnn_fills_up_small_graphs_with_zeros():
    net = get_baseline("dgcnn").load()(3, 4, 2, sort_size=10).double().eval()
    net.convolutions, net.head = nn.Identity(), nn.Flatten()
    rows = net(*graph(6), *one(6)).view(10, -1)
    assert (rows[:6].abs().sum(1) > 0).all()
    assert (rows[6:] == 0).all()


def test_diffpool_leaves_link_and_entropy_losses_behind():
    """With one cluster S = 1: the link loss is the distance of A from a matrix of ones."""
    x, edge_index = graph(5, 0.5, 1)
    net = DiffPool(3, 4, 2, num_clusters=1).double()
    net(x, edge_index, *one(5))
    A = dense(edge_index, 5)
    expected = (A - 1).square().sum().sqrt() / 25
    torch.testing.assert_close(net.auxiliary_loss, expected)
    net = DiffPool(3, 4, 2, num_clusters=4).double()
    for assign in net.assign:  # scores of zero: every node is in all four clusters alike
        nn.init.zeros_(assign.scores.weight)
        nn.init.zeros_(assign.scores.bias)
    net(x, edge_index, *one(5))
    expected = (A - 0.25).square().sum().sqrt() / 25 + math.log(4)
    torch.testing.assert_close(net.auxiliary_loss, expected)
    net = DiffPool(3, 4, 2, num_clusters=4).double()
    net(x, edge_index, *one(5))
    net.auxiliary_loss.backward()
    assert net.assign[0].scores.weight.grad.abs().max() > 0


def test_padding_does_not_enter_the_losses_of_diffpool():
    x, edge_index, batch, alone = two_graphs()
    net = DiffPool(3, 4, 2, num_clusters=4).double()
    nn.init.zeros_(net.assign[0].scores.weight)
    nn.init.zeros_(net.assign[0].scores.bias)
    net(x, edge_index, batch, 2)
    squares = sum((dense(e, len(f)) - 0.25).square().sum() for f, e in alone)
    # Means over 2 * 5 * 5 entries and over 2 * 5 nodes, one of which is padding.
    torch.testing.assert_close(net.auxiliary_loss, squares.sqrt() / 50 + 0.9 * math.log(4))


def test_padding_does_not_enter_the_batch_norms_of_diffpool():
    x, edge_index, batch, _ = two_graphs()
    net = DiffPool(3, 4, 2).double()
    net(x, edge_index, batch, 2)
    first = net.embed[0].convs[0]
    A = dense(edge_index, 9)
    made = first.lin_rel(A @ x / A.sum(1, keepdim=True).clamp(min=1)) + first.lin_root(x)
    seen = net.embed[0].norms[0].module.running_mean
    torch.testing.assert_close(seen, 0.1 * made.mean(0))


def test_ecc_with_constant_edge_features_is_a_mean_convolution():
    x, edge_index = graph(9, 0.3)
    net = ECC(3, 4, 2, num_layers=1).double().eval()
    conv = net.convs[0]
    W = conv.filters(torch.ones(1, 1, dtype=torch.double)).view(3, 4)
    made = conv.root(x) + SimpleConv(aggr="mean")(x, edge_index) @ W
    h = net.norms[0](made).relu().mean(0, keepdim=True)
    torch.testing.assert_close(net(x, edge_index, *one(9)), net.head(h))


def test_a_convolution_of_ecc_is_that_of_pyg():
    """The edges of three kinds, and every edge of its own; one node has no edge at all."""
    x, edge_index = graph(9, 0.3)
    x = torch.cat([x, x[:1]])
    conv = ECConv(3, 4, 2, filter_channels=5).double()
    theirs = NNConv(3, 4, conv.filters, aggr="mean", bias=False).double()
    theirs.lin = conv.root
    num_edges = edge_index.size(1)
    for kinds in (torch.randn(3, 2), torch.randn(num_edges, 2)):
        kind_of = torch.arange(num_edges) % len(kinds)
        expected = theirs(x, edge_index, kinds.double()[kind_of])
        torch.testing.assert_close(conv(x, edge_index, kinds.double(), kind_of), expected)


def test_ecc_without_any_edge_has_the_nodes_alone():
    x, none = torch.randn(2, 3, dtype=torch.double), torch.empty(2, 0, dtype=torch.long)
    net = ECC(3, 4, 2, num_layers=1, edge_channels=2).double().eval()
    h = net.norms[0](net.convs[0].root(x)).relu().mean(0, keepdim=True)
    for features in (None, x.new_empty(0, 2)):
        out = net(x, none, *one(2), edge_attr=features)
        torch.testing.assert_close(out, net.head(h))


def test_ecc_sees_edge_features():
    x, edge_index = graph(9, 0.3)
    net = ECC(3, 4, 2, edge_channels=2).double().eval()
    features = torch.randn(edge_index.size(1), 2, dtype=torch.double)
    outs = [net(x, edge_index, *one(9), edge_attr=f) for f in (None, features, 2 * features)]
    assert (outs[0] - outs[1]).abs().max() > 1e-6
    assert (outs[1] - outs[2]).abs().max() > 1e-6


@pytest.mark.parametrize("few", [0, 64])
def test_rwgnn_equals_the_kronecker_product(few, monkeypatch):
    monkeypatch.setattr(rwgnn, "_FEW_FEATURES", few)
    x, edge_index, batch, alone = two_graphs()
    net = RWGNN(3, 4, 2, filter_size=3, num_steps=3).double().eval()
    K = net.kernel_values(x, edge_index, batch, 3)  # a third graph is empty
    B, W = net.filters.adjacency(), net.filters.attributes
    for p in range(4):
        for i in range(4):
            for g, (features, edges) in enumerate(alone):
                h, A = net.input_map(features), dense(edges, len(features))
                expected = kronecker_kernel(A, h, B[i], W[i], p)
                torch.testing.assert_close(K[p, g, i], expected, rtol=1e-9, atol=1e-9)
    assert (K[:, 2] == 0).all()
    expected = net.head(K.permute(1, 2, 0).flatten(1))
    torch.testing.assert_close(net(x, edge_index, batch, 3), expected)


@pytest.mark.parametrize("num_steps", range(5))
def test_both_forms_of_rwgnn_have_the_same_gradients(num_steps, monkeypatch):
    x, edge_index, batch, _ = two_graphs()
    found = []
    for few in (0, 64):
        monkeypatch.setattr(rwgnn, "_FEW_FEATURES", few)
        torch.manual_seed(0)
        net = RWGNN(3, 4, 2, filter_size=3, num_steps=num_steps, input_channels=None).double()
        h = x.clone().requires_grad_()
        K = net.kernel_values(h, edge_index, batch, 3)
        K.square().sum().backward()
        found.append([K, h.grad, *(p.grad for p in net.filters.parameters())])
    for one_form, other in zip(*found, strict=True):
        torch.testing.assert_close(one_form, other)


def test_rwgnn_counts_walks():
    """A star and a path of four nodes have the same numbers of nodes and edges, not of walks."""
    x = torch.ones(4, 2, dtype=torch.double)
    star, path = undirected((0, 1), (0, 2), (0, 3)), undirected((0, 1), (1, 2), (2, 3))
    net = RWGNN(2, 4, 2, num_steps=2).double().eval()
    apart = net.kernel_values(x, star, *one(4)) - net.kernel_values(x, path, *one(4))
    assert apart[:2].abs().max() < 1e-9
    assert apart[2].abs().max() > 1e-3


@pytest.mark.parametrize(("size", "connected"), [(2, False), (2, True), (3, False), (3, True)])
def test_node_sets_equal_the_definition(size, connected):
    x, edge_index, batch, _ = two_graphs()
    sets = node_sets(edge_index, batch, size, connected)
    G = nx.Graph(edge_index.T.tolist())
    G.add_nodes_from(range(len(x)))
    expected = [
        s
        for s in combinations(range(9), size)
        if len(set(batch[list(s)].tolist())) == 1
        and (not connected or nx.is_connected(G.subgraph(s)))
    ]
    assert list(map(tuple, sets.members.tolist())) == expected
    assert sets.num_edges.tolist() == [G.subgraph(s).number_of_edges() for s in expected]
    assert torch.equal(sets.batch, batch[sets.members[:, 0]])
    neighbors = {
        (i, j)
        for i, s in enumerate(expected)
        for j, t in enumerate(expected)
        if len({*s} - {*t}) == 1 and G.has_edge(*({*s} ^ {*t}))
    }
    found = list(map(tuple, sets.edge_index.T.tolist()))
    assert len(found) == len(set(found))
    assert set(found) == neighbors


def test_123gnn_equals_its_formula():
    x, edge_index, batch, _ = two_graphs()
    net = GNN123(3, 4, 2, num_layers=2).double().eval()

    def convolve(convs, h, A):
        for conv in convs:
            h = torch.nn.functional.elu(conv.lin_rel(A @ h) + conv.lin_root(h))
        return h

    def means(h, owner):
        return torch.stack([h[owner == g].mean(0) for g in (0, 1)])

    nodes = convolve(net.convs[0], x, dense(edge_index, 9))
    parts = [means(nodes, batch)]
    for size in (2, 3):
        sets = node_sets(edge_index, batch, size, connected=size == 3)
        kind = torch.eye(2 if size == 2 else 4, dtype=torch.double)[sets.num_edges]
        h = torch.cat([kind, nodes[sets.members].mean(1)], dim=1)
        h = convolve(net.convs[size - 1], h, dense(sets.edge_index, len(h)))
        parts.append(means(h, sets.batch))
    expected = net.head(torch.cat(parts, dim=1))
    torch.testing.assert_close(net(x, edge_index, batch, 2), expected)


def test_123gnn_takes_sets_that_were_found_before():
    x, edge_index, batch, _ = two_graphs()
    net = GNN123(3, 4, 2, connected=False).double().eval()
    sets = node_sets(edge_index, batch, 2), node_sets(edge_index, batch, 3)
    expected = net(x, edge_index, batch, 2)
    assert torch.equal(net(x, edge_index, batch, 2, sets=sets), expected)
    fewer = sets[0], node_sets(edge_index, batch, 3, connected=True)
    assert not torch.equal(net(x, edge_index, batch, 2, sets=fewer), expected)


def test_the_channel_product_of_ppgn_is_that_of_dense_matrices():
    """Graphs of three, no and two nodes: 9 + 0 + 4 pairs."""
    left, right = (torch.randn(13, 4, dtype=torch.double) for _ in range(2))
    product = channel_product(left, right, [3, 0, 2])
    assert product.shape == (13, 4)
    for channel in range(4):
        for rows, n in ((slice(0, 9), 3), (slice(9, 13), 2)):
            A, B = left[rows, channel].view(n, n), right[rows, channel].view(n, n)
            torch.testing.assert_close(product[rows, channel].view(n, n), A @ B)
    left.requires_grad_()
    right.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: channel_product(a, b, [3, 0, 2]), (left, right))


def test_ppgn_equals_its_formula():
    x, edge_index = graph(5, 0.5, 1)
    net = PPGN(3, 4, 2, num_layers=2).double()
    A = dense(edge_index, 5)
    A = A / torch.outer(A.sum(0), A.sum(0)).clamp(min=1).sqrt()
    T = torch.cat([A.unsqueeze(0), torch.diag_embed(x.T)]).permute(1, 2, 0)
    expected = 0
    for block, head in zip(net.blocks, net.heads, strict=True):
        product = torch.einsum("uvc,vwc->uwc", block.left(T), block.right(T))
        T = block.skip(torch.cat([T, product], dim=-1))
        on = torch.eye(5, dtype=torch.bool)
        expected = expected + head(torch.cat([T[part].amax(0) for part in (on, ~on)]))
    torch.testing.assert_close(net(x, edge_index, *one(5))[0], expected)


def test_a_single_node_has_no_pairs_for_ppgn():
    x, none = torch.randn(1, 3, dtype=torch.double), torch.empty(2, 0, dtype=torch.long)
    net = PPGN(3, 4, 2, num_layers=1).double()
    T = net.blocks[0](torch.cat([x.new_zeros(1, 1), x], dim=1), [1])
    expected = net.heads[0](torch.cat([T, torch.zeros_like(T)], dim=1))
    torch.testing.assert_close(net(x, none, *one(1)), expected)


def exact_path_kernel(x, paths, graph_of, num_graphs, sigma):
    f = x[paths].flatten(1)
    kappa = torch.exp(-torch.cdist(f, f).square() / (2 * paths.size(1) * sigma**2))
    owner = torch.zeros(num_graphs, len(paths), dtype=torch.double)
    owner[graph_of[paths[:, 0]], torch.arange(len(paths))] = 1
    return owner @ kappa @ owner.T


@pytest.mark.parametrize("walks", [True, False])
def test_paths_are_those_of_networkx(walks):
    _, edge_index = graph(7, 0.5)
    A = dense(edge_index, 7)
    paths = find_paths(edge_index, 7, 4, walks)
    G = nx.Graph(edge_index.T.tolist())
    steps = [tuple(p) for p in paths.tolist()]
    assert all(G.has_edge(a, b) for p in steps for a, b in pairwise(p))
    assert len(set(steps)) == len(steps)
    if walks:
        assert len(steps) == torch.linalg.matrix_power(A, 3).sum()
    else:
        pairs = ((u, v) for u in range(7) for v in range(7) if u != v)
        expected = [p for u, v in pairs for p in nx.all_simple_paths(G, u, v, cutoff=3)]
        assert sorted(steps) == sorted(tuple(p) for p in expected if len(p) == 4)


@pytest.mark.parametrize("walks", [True, False])
def test_gckn_with_all_paths_as_anchors_is_the_path_kernel(walks):
    x, edge_index, batch, _ = two_graphs()
    paths = find_paths(edge_index, 9, 3, walks)
    graphs = GraphSet("two", "graph", torch.tensor([5, 4]), edge_index, torch.zeros(2), ("a",))
    exact = exact_path_kernel(x, paths, batch, 2, 0.7)
    options = {"sigma": 0.7, "walks": walks, "normalize": False}
    every = torch.from_numpy(gram(graphs, x, hidden_channels=len(paths), **options))
    torch.testing.assert_close(every, exact, rtol=1e-3, atol=1e-3)
    errors = []
    for num_anchors in (2, 8, len(paths)):
        K = torch.from_numpy(gram(graphs, x, hidden_channels=num_anchors, **options))
        left_out = exact - K
        assert torch.linalg.eigvalsh(left_out).min() > -1e-3  # Nystroem: never more than exact
        errors.append(left_out.abs().max().item())
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1


def test_a_node_of_gckn_has_the_paths_that_start_there():
    x, edge_index, _, _ = two_graphs()
    paths = find_paths(edge_index, 9, 3)
    net = GCKN(3, len(paths), 2, sigma=0.7, jitter=1e-9).double()
    net.fit_anchors(x, paths)
    phi = net.node_features(x, paths)
    exact = exact_path_kernel(x, paths, torch.arange(9), 9, 0.7)
    torch.testing.assert_close(phi @ phi.T, exact, rtol=1e-5, atol=1e-5)


def test_unsupervised_anchors_do_not_touch_the_random_numbers_of_others():
    x, edge_index, _, _ = two_graphs()
    graphs = GraphSet("two", "graph", torch.tensor([5, 4]), edge_index, torch.zeros(2), ("a",))
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = gram(graphs, x, hidden_channels=4)
    assert torch.equal(torch.rand(1), expected)
    assert (first == gram(graphs, x, hidden_channels=4)).all()


def test_anchors_of_gckn_are_trained_through_the_inverse_root():
    K = torch.randn(5, 5, dtype=torch.double)
    K = (K @ K.T).requires_grad_()

    def symmetric(matrix):
        return _InverseRoot.apply((matrix + matrix.T) / 2, 0.1)

    assert torch.autograd.gradcheck(symmetric, (K,))
    equal = torch.eye(4, dtype=torch.double, requires_grad=True)  # equal eigenvalues
    _InverseRoot.apply(equal, 0.0).sum().backward()
    torch.testing.assert_close(equal.grad, torch.full((4, 4), -0.5, dtype=torch.double))


def test_the_derivative_of_gckn_is_right():
    x, edge_index, _, _ = two_graphs()
    paths = find_paths(edge_index, 9, 2)
    net = GCKN(3, 4, 2, path_size=2).double()

    def features(x, anchors):
        return net._layer(x, paths, anchors)

    assert torch.autograd.gradcheck(features, (x.requires_grad_(), net.anchors[0]))


def test_two_equal_anchors_of_gckn_count_once():
    x, edge_index, _, _ = two_graphs()
    paths = find_paths(edge_index, 9, 3)
    one_anchor, twice = (GCKN(3, n, 2, jitter=1e-10).double() for n in (1, 2))
    with torch.no_grad():
        twice.anchors[0][:] = one_anchor.anchors[0]
    a, b = (net.node_features(x, paths) for net in (one_anchor, twice))
    torch.testing.assert_close(a @ a.T, b @ b.T, rtol=1e-6, atol=1e-6)
