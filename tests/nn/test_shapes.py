import copy

import networkx as nx
import pytest
import torch

from kergnn import EgoGraphs, KerGNN
from kergnn.nn.shapes import frequent_shapes
from kergnn.testing import random_graph


def ego_of(graph, num_hops=1):
    edge_index = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return EgoGraphs.from_edge_index(edge_index, len(graph), num_hops)


def as_networkx(adjacency):
    graph = nx.from_numpy_array(adjacency.numpy())
    graph.remove_nodes_from(list(nx.isolates(graph)))
    return graph


def test_the_most_frequent_shapes_come_first():
    """Four ends of paths (an edge each), two inner nodes, a triangle, a lonely node."""
    graph = nx.disjoint_union_all(
        [nx.path_graph(3), nx.path_graph(3), nx.complete_graph(3), nx.empty_graph(1)]
    )
    shapes, nodes = frequent_shapes(ego_of(graph), 4, 10)
    assert shapes.shape == (3, 4, 4)
    expected = [nx.path_graph(2), nx.complete_graph(3), nx.path_graph(3)]
    for adjacency, wanted in zip(shapes, expected, strict=True):
        assert nx.is_isomorphic(as_networkx(adjacency), wanted)
    assert nodes[0].tolist()[2:] == [-1, -1]
    for adjacency, members in zip(shapes, nodes, strict=True):
        for a, b in adjacency.nonzero().tolist():
            assert graph.has_edge(int(members[a]), int(members[b]))
    assert len(frequent_shapes(ego_of(graph), 4, 2)[0]) == 2
    assert len(frequent_shapes(ego_of(nx.empty_graph(3)), 4, 2)[0]) == 0


@pytest.mark.parametrize("size", [3, 5])
def test_different_shapes_are_told_apart(size):
    """Every connected graph of up to five nodes is its own ego-graph, once a hub joins all."""
    connected = [g for g in nx.graph_atlas_g() if 2 <= len(g) <= size and nx.is_connected(g)]
    union = nx.disjoint_union_all(connected)
    shapes, _ = frequent_shapes(ego_of(union, num_hops=size), size, 1000)
    assert len(shapes) == len(connected)


def test_filters_start_from_the_ego_graphs_and_lose_edges_only():
    torch.manual_seed(0)
    x, edge_index = random_graph(12, 0.3, seed=3)
    ego = EgoGraphs.from_edge_index(edge_index, 12)
    options = {"num_layers": 2, "filter_size": 4, "engine": "torch"}
    model = KerGNN(3, 6, 2, filter_init="ego", hard_edges=True, **options).double()
    model.start_from(x, ego)
    shapes, nodes = frequent_shapes(ego, 4, 6)
    adjacency, attributes = model.convs[0].filters()
    assert torch.equal(adjacency[: len(shapes)], shapes.double() / 2)
    torch.testing.assert_close(attributes[0, 0], x[nodes[0, 0]])
    assert torch.equal(model.convs[1].filters()[0][: len(shapes)], shapes.double() / 2)

    before = [conv.filters()[0] > 0 for conv in model.convs]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
    for _ in range(20):
        optimizer.zero_grad()
        model(x, ego)[0, 0].backward()
        optimizer.step()
    after = [conv.filters()[0] for conv in model.convs]
    assert all(set(a.unique().tolist()) <= {0.0, 0.5} for a in after)
    assert all((b | ~(a > 0)).all() for a, b in zip(after, before, strict=True))
    assert any(((a > 0) != b).any() for a, b in zip(after, before, strict=True))
    assert KerGNN(3, 6, 2).start_from is None


def test_penalties_are_what_they_say():
    model = KerGNN(3, 4, 2, readout="evidence", edge_penalty=0.5, evidence_penalty=2.0)
    weights = torch.cat([conv.groups[0].edge_weight.relu().flatten() for conv in model.convs])
    assert model.auxiliary_loss.item() == pytest.approx(0.5 * weights.mean().item())
    x, edge_index = random_graph(6, 0.4)
    seen = []
    model.head.register_forward_hook(lambda module, inputs, out: seen.append(out))
    logits = model(x.float(), edge_index)
    evidence = seen[0] - seen[0].mean(1, keepdim=True)
    expected = 0.5 * weights.mean() + 2 * evidence.abs().mean()
    assert model.auxiliary_loss.item() == pytest.approx(expected.item())
    torch.testing.assert_close(logits, evidence.sum(0, keepdim=True))
    copied = copy.deepcopy(model)  # what is trained can be copied
    torch.testing.assert_close(copied.auxiliary_loss, model.auxiliary_loss)
    assert KerGNN(3, 4, 2).auxiliary_loss == 0
    for name in ("edge_penalty", "evidence_penalty"):
        with pytest.raises(ValueError, match=f"{name} is -1"):
            KerGNN(3, 4, 2, **{name: -1})
    with pytest.raises(ValueError, match="unless readout is 'evidence'"):
        KerGNN(3, 4, 2, evidence_penalty=1.0)
