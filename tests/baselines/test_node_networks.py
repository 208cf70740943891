"""The defining property of every network for nodes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.utils import coalesce

from kergnn.baselines.appnp import APPNP
from kergnn.baselines.gat import GAT
from kergnn.baselines.gcn import GCN
from kergnn.baselines.gcnii import GCNII
from kergnn.baselines.geomgcn import GeomGCN, embed, neighbors
from kergnn.baselines.jknet import JKNet
from kergnn.testing import random_graph


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def graph():
    x, edge_index = random_graph(12, 0.3, seed=1)
    return x, coalesce(edge_index, num_nodes=12)


def propagation(edge_index, num_nodes):
    """Return the symmetrically normalised adjacency with loops, dense."""
    A = torch.eye(num_nodes, dtype=torch.double)
    A[edge_index[0], edge_index[1]] = 1
    scale = A.sum(1).rsqrt()
    return scale.unsqueeze(1) * A * scale


def no_edges():
    return torch.zeros(2, 0, dtype=torch.long)


def test_gcn_multiplies_by_the_normalised_adjacency(graph):
    x, edge_index = graph
    net = GCN(3, 4, 2).double().eval()
    P, (first, second) = propagation(edge_index, 12), net.convs
    h = (P @ first.lin(x) + first.bias).relu()
    torch.testing.assert_close(net(x, edge_index), P @ second.lin(h) + second.bias)


def test_attention_of_gat_sums_to_one_at_every_node(graph):
    x, edge_index = graph
    net = GAT(3, 8, 2, heads=4).double().eval()
    _, (index, attention) = net.convs[0](x, edge_index, return_attention_weights=True)
    assert attention.shape == (edge_index.size(1) + 12, 4)  # each node attends to itself as well
    total = torch.zeros(12, 4, dtype=torch.double).index_add(0, index[1], attention)
    torch.testing.assert_close(total, torch.ones_like(total))
    assert attention.std() > 1e-3


def test_gat_mixes_neighbours_by_attention_and_averages_the_last_heads(graph):
    x, edge_index = graph
    net = GAT(3, 8, 2, heads=4).double().eval()
    h = x
    for conv, last in zip(net.convs, [False, True], strict=True):
        made = conv.lin(h).view(12, 4, 2)
        score = (made * conv.att_dst).sum(-1).unsqueeze(1) + (made * conv.att_src).sum(-1)
        score = torch.nn.functional.leaky_relu(score, 0.2)  # (to, from, head)
        near = propagation(edge_index, 12) > 0
        attention = score.masked_fill(~near.unsqueeze(-1), -torch.inf).softmax(1)
        mixed = torch.einsum("uvk,vkc->ukc", attention, made)
        h = mixed.mean(1) + conv.bias if last else mixed.flatten(1) + conv.bias
        h = h if last else torch.nn.functional.elu(h)
    torch.testing.assert_close(net(x, edge_index), h)


def test_heads_of_gat_must_divide_the_width():
    with pytest.raises(ValueError, match="heads is 3"):
        GAT(3, 8, 2, heads=3)


def test_appnp_without_steps_is_an_mlp(graph):
    x, edge_index = graph
    net = APPNP(3, 4, 2, num_steps=0).double().eval()
    assert torch.equal(net(x, edge_index), net.mlp(x))


def test_appnp_converges_to_personalised_pagerank(graph):
    x, edge_index = graph
    net = APPNP(3, 4, 2, num_steps=200, alpha=0.2).double().eval()
    P = propagation(edge_index, 12)
    limit = 0.2 * torch.linalg.inv(torch.eye(12, dtype=torch.double) - 0.8 * P)
    torch.testing.assert_close(net(x, edge_index), limit @ net.mlp(x))


def test_the_last_layer_of_jknet_sees_all_layers(graph):
    x, edge_index = graph
    net = JKNet(3, 4, 2, num_layers=3).double().eval()
    seen = []
    for conv in net.convs:
        conv.register_forward_hook(lambda module, args, out: seen.append(out.relu()))
    out = net(x, edge_index)
    torch.testing.assert_close(out, net.head(torch.cat(seen, dim=1)))
    for layer in range(3):
        part = slice(4 * layer, 4 * layer + 4)
        changed = JKNet(3, 4, 2, num_layers=3).double().eval()
        changed.load_state_dict(net.state_dict())
        nn.init.zeros_(changed.head.weight[:, part])
        assert (changed(x, edge_index) - out).abs().max() > 1e-6
    seen.clear()
    net = JKNet(3, 4, 2, num_layers=3, aggr="max").double().eval()
    for conv in net.convs:
        conv.register_forward_hook(lambda module, args, out: seen.append(out.relu()))
    out = net(x, edge_index)
    torch.testing.assert_close(out, net.head(torch.stack(seen).amax(0)))


def test_gcnii_with_alpha_one_ignores_the_graph(graph):
    x, edge_index = graph
    net = GCNII(3, 4, 2, alpha=1.0).double().eval()
    torch.testing.assert_close(net(x, edge_index), net(x, no_edges()))
    net = GCNII(3, 4, 2, alpha=0.9).double().eval()
    assert (net(x, edge_index) - net(x, no_edges())).abs().max() > 1e-6


def test_gcnii_equals_its_formula(graph):
    x, edge_index = graph
    net = GCNII(3, 4, 2, num_layers=3, alpha=0.2, theta=0.5).double().eval()
    P = propagation(edge_index, 12)
    h = first = net.first(x).relu()
    for layer, conv in enumerate(net.convs, start=1):
        beta = np.log(0.5 / layer + 1)
        mixed = 0.8 * P @ h + 0.2 * first
        h = ((1 - beta) * mixed + beta * mixed @ conv.weight1).relu()
    torch.testing.assert_close(net(x, edge_index), net.last(h))


def test_the_plane_of_geomgcn_keeps_a_path_in_order():
    line = torch.stack([torch.arange(9), torch.arange(1, 10)])
    place = embed(torch.cat([line, line.flip(0)], dim=1), 10)
    steps = np.diff(place[:, 0])
    assert (steps > 0).all() or (steps < 0).all()


def test_the_plane_of_geomgcn_keeps_components_apart():
    pairs = torch.tensor(
        [[0, 1, 1, 2, 0, 2, 3, 4, 4, 5, 3, 5], [1, 0, 2, 1, 2, 0, 4, 3, 5, 4, 5, 3]]
    )
    place = embed(pairs, 6)
    within = np.linalg.norm(place[:3] - place[:3].mean(0), axis=1).max()
    assert np.linalg.norm(place[:3].mean(0) - place[3:].mean(0)) > 2 * within


def test_a_node_that_cannot_be_reached_is_far_away_in_the_plane():
    line = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    place = embed(torch.cat([line, line.flip(0)], dim=1), 6, num_landmarks=2)
    away = np.linalg.norm(place - place[1], axis=1)
    assert away.argmax() == 5


def test_neighbourhoods_of_geomgcn_hold_the_graph_and_the_plane_by_quadrant(graph):
    _, edge_index = graph
    around, place = neighbors(edge_index, 12, num_neighbors=3), embed(edge_index, 12)
    source, target = around.edge_index
    in_graph = around.relation < 4
    assert in_graph.sum() == edge_index.size(1) + 12
    assert torch.equal(target[~in_graph].bincount(), torch.full((12,), 3 + 1))
    for u, v, r in zip(source.tolist(), target.tolist(), around.relation.tolist(), strict=True):
        dx, dy = place[u] - place[v]
        assert r % 4 == 2 * (dx > 0) + (dy > 0)
    for v in range(12):
        chosen = source[~in_graph & (target == v) & (source != v)].tolist()
        distance = np.linalg.norm(place - place[v], axis=1)
        others = [u for u in range(12) if u != v and u not in chosen]
        assert distance[chosen].max() <= distance[others].min() + 1e-12


def test_geomgcn_sums_every_relation_by_itself(graph):
    x, edge_index = graph
    net = GeomGCN(3, 4, 2).double().eval()
    around = neighbors(edge_index, 12)
    h = x
    for linear, last in zip(net.maps, [False, True], strict=True):
        parts = []
        for r, W in enumerate(linear.weight.chunk(8)):
            A = torch.zeros(12, 12, dtype=torch.double)
            mine = around.relation == r
            source, target = around.edge_index[:, mine]
            A[target, source] = around.weight[mine]
            parts.append(A @ h @ W.T)
        h = torch.stack(parts).mean(0) if last else torch.cat(parts, dim=1).relu()
    torch.testing.assert_close(net(x, edge_index), h)
    torch.testing.assert_close(net(x, edge_index, around), h)
    # With all quadrants and no plane, the weights are those of GCN.
    P = torch.zeros(12, 12, dtype=torch.double)
    own = around.relation < 4
    P[around.edge_index[1, own], around.edge_index[0, own]] = around.weight[own]
    torch.testing.assert_close(P, propagation(edge_index, 12))
