import pytest
import torch
from torch_geometric.data import Data

from kergnn import EgoGraphs, EgoSubgraphs, KerGNN
from kergnn.explain import attribution, edge_contributions, explain, node_contributions
from kergnn.explain.attribution import METHODS
from kergnn.explain.contributions import walk_states
from kergnn.explain.tracing import ego_graphs, trace_forward
from kergnn.testing import dense_smoothing, random_graph


def make(seed=0, num_nodes=8, **options):
    torch.manual_seed(seed)
    settings = {"num_layers": 2, "filter_size": 3, "num_hops": 1, "engine": "torch", **options}
    model = KerGNN(3, 5, 2, **settings).double()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if name.endswith("bias"):
                tensor.normal_()
        for name, tensor in model.named_buffers():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2)
    x, edge_index = random_graph(num_nodes, 0.4, seed=seed)
    return model.eval(), Data(x=x, edge_index=edge_index, num_nodes=num_nodes)


def share_of_biases(model, data, target, index=None):
    """Every bias times the derivative that hands shares down."""
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    trace = trace_forward(model, data.x, ego_graphs(model, data), index, exact=True)
    logit = trace.outputs.sum(0)[target]
    gradients = torch.autograd.grad(logit, biases, allow_unused=True, materialize_grads=True)
    return sum((b * g).sum() for b, g in zip(biases, gradients, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rw-step", "num_steps": 3},
        {"kernel": "drw", "num_hops": 2},
        {"kernel": {"rw": 2, "gcn": 3}},
        {"normalize": "root", "update": "linear"},
        {"normalize": "size", "update": None, "readout": "mean"},
        {"norm": "layer"},
        {"norm": None, "num_layers": 1, "input_channels": 4},
        {"step_weights": [1.0, 0.5, 0.2]},
        {"readout": "evidence"},
        {"readout": "log"},
        {"readout": "log", "norm": "layer"},
    ],
)
def test_nodes_and_biases_sum_to_the_logit(options):
    model, data = make(**options)
    for target in (0, 1):
        found = explain(model, data, target, method="walks")
        expected = model(data.x, data.edge_index)
        torch.testing.assert_close(found.prediction, expected, rtol=1e-9, atol=1e-9)
        logit = expected[0, target]
        assert abs(found.baseline + found.node_contribution.sum() - logit) < 1e-9
        assert abs(found.baseline - share_of_biases(model, data, target)) < 1e-9 * (1 + abs(logit))
        assert found.node_contribution.abs().sum() > 0


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_the_shares_of_the_layers_in_the_head_are_exact(readout):
    """Taking a little of one node's features away takes the same part of its share away."""
    model, data = make(readout=readout)
    found = explain(model, data, 1)
    features = model.node_features(data.x, data.edge_index)
    for layer in range(3):
        for node in (0, 5):
            changed = [f.clone() for f in features]
            changed[layer][node] *= 1 - 1e-6
            pooled = [getattr(f, readout)(0, keepdim=True) for f in changed]
            logit = model.head(torch.cat(pooled, dim=1))[0, 1]
            drop = (found.prediction[0, 1] - logit) / 1e-6
            share = found.layer_contribution[layer, node]
            assert drop.item() == pytest.approx(share.item(), abs=1e-5)
    readout = explain(model, data, 1, method="readout")
    assert torch.equal(readout.node_contribution, found.layer_contribution.sum(0))
    assert abs(readout.baseline + readout.node_contribution.sum() - found.prediction[0, 1]) < 1e-9


def test_nodes_share_the_logarithm_of_a_sum_in_proportion_to_their_summands():
    model, data = make(readout="log")
    features = [f.detach() for f in model.node_features(data.x, data.edge_index)]
    sums = [f.sum(0, keepdim=True) for f in features]
    logs = [(s.sign() * s.abs().log1p()).requires_grad_() for s in sums]
    gradients = torch.autograd.grad(model.head(torch.cat(logs, dim=1))[0, 1], logs)
    parts = zip(features, sums, logs, gradients, strict=True)
    # A sum of exactly zero, of a feature that no node has, is nobody's.
    expected = torch.stack([(f / s.masked_fill(s == 0, 1) * z * g).sum(1) for f, s, z, g in parts])
    for method in ("walks", "gradient", "readout"):
        found = explain(model, data, 1, method=method)
        torch.testing.assert_close(found.layer_contribution, expected.detach())


@pytest.mark.parametrize("options", [{}, {"restart": 0.3}])
def test_nodes_are_not_read_out(options):
    model, data = make(task="node", **options)
    expected = explain(model, data, 1, index=2)
    model.readout = "log"
    found = explain(model, data, 1, index=2)
    for key in ("prediction", "node_contribution", "layer_contribution", "edge_contribution"):
        assert torch.equal(found[key], expected[key]), key


def test_evidence_is_a_sum_over_nodes_as_it_is():
    model, data = make(readout="evidence")
    found = explain(model, data, 1)
    features = torch.cat(model.node_features(data.x, data.edge_index), dim=1)
    both = model.head(features)
    expected = (both[:, 1] - both[:, 0]) / 2
    torch.testing.assert_close(found.node_contribution, expected.detach())
    assert abs(found.baseline) < 1e-9
    ends = expected[data.edge_index].detach()
    edges = ends.min(0).values + 0.1 * ends.mean(0)
    torch.testing.assert_close(found.edge_contribution, edges)


def test_one_layer_is_explained_by_the_contributions_to_its_kernel_values():
    model, data = make(num_layers=1, norm=None, normalize=None, update=None)
    ego = EgoGraphs.from_edge_index(data.edge_index, data.num_nodes, 1)
    adjacency, attributes = model.convs[0].filters()
    features = model.node_features(data.x, ego)
    Phi = torch.cat([f.sum(0, keepdim=True) for f in features], dim=1).detach().requires_grad_()
    (g,) = torch.autograd.grad(model.head(Phi)[0, 0], Phi)
    of_input, of_kernel = g[0].split([3, 5])
    active = (features[1] > 0) * of_kernel  # a kernel value below zero ends at the ReLU
    arguments = ("rw", data.x, ego, adjacency, attributes, 2)
    weight = active[ego.center]
    shares = (node_contributions(*arguments).sum(0) * weight).sum(1)
    expected = (data.x * of_input).sum(1).index_add(0, ego.index, shares)
    found = explain(model, data, 0)
    torch.testing.assert_close(found.node_contribution, expected.detach(), rtol=1e-9, atol=1e-9)

    row, col = ego.edge_index
    of_edges = (edge_contributions(*arguments)[1:].sum(0) * active[ego.center[row]]).sum(1)
    for e, (a, b) in enumerate(data.edge_index.T.tolist()):
        here = (ego.index[row] == a) & (ego.index[col] == b)
        back = (ego.index[row] == b) & (ego.index[col] == a)
        wanted = of_edges[here | back].sum() / 2
        assert found.edge_contribution[e].item() == pytest.approx(wanted.item(), abs=1e-9)


def test_masks_are_the_positive_contributions_and_pyg_accepts_them():
    model, data = make()
    for method in METHODS:
        found = explain(model, data, method=method)
        assert found.validate_masks()
        assert int(found.target) == int(found.prediction.argmax())
        for mask, shares in (
            (found.node_mask.flatten(), found.node_contribution),
            (found.edge_mask, found.edge_contribution),
        ):
            assert mask.min() >= 0
            assert mask.max() == 1
            assert torch.equal(mask > 0, shares > 0)


@pytest.mark.parametrize("readout", ["sum", "log"])
def test_the_gradient_method_is_input_times_gradient(readout):
    model, data = make(readout=readout)
    x = data.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x, data.edge_index)[0, 0], x)
    found = explain(model, data, 0, method="gradient")
    expected = (x * gradient).sum(1).detach()
    torch.testing.assert_close(found.node_contribution, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rw", "rw-step"])
def test_the_gradient_method_of_edges_is_the_derivative_by_their_weights(kernel):
    options = {"num_layers": 1, "norm": None, "normalize": None, "update": None, "num_steps": 3}
    model, data = make(kernel=kernel, **options)
    ego = ego_graphs(model, data)
    weight = torch.ones(ego.edge_index.size(1), dtype=torch.float64).requires_grad_()
    filters = model.convs[0].filters()
    states = walk_states(kernel, data.x, ego, *filters, 3, edge_weight=weight)
    K = torch.einsum("p,pni->ni", model.convs[0].step_weight, states.values()).relu()
    logit = model.head(torch.cat([data.x.sum(0), K.sum(0)]).unsqueeze(0))[0, 0]
    torch.testing.assert_close(logit, model(data.x, data.edge_index)[0, 0])
    (gradient,) = torch.autograd.grad(logit, weight)
    ends = ego.index[ego.edge_index]
    found = explain(model, data, 0, method="gradient")
    for share, entry in zip(found.edge_contribution, data.edge_index.T, strict=True):
        same = (ends == entry.unsqueeze(1)).all(0) | (ends == entry.flip(0).unsqueeze(1)).all(0)
        assert share.item() == pytest.approx(gradient[same].sum().item() / 2, abs=1e-9)


@pytest.mark.parametrize(("index", "restart"), [(None, None), (3, None), (3, 0.3)])
def test_occlusion_is_what_the_logit_loses_without_an_edge(index, restart, monkeypatch):
    monkeypatch.setattr(attribution, "_NODES_AT_ONCE", 30)  # several batches
    task = "graph" if index is None else "node"
    model, data = make(task=task, max_nodes=4, restart=restart)
    model.train()
    found = explain(model, data, 1, index=index, method="occlusion")
    assert model.training
    model.eval()
    row = index or 0
    for entry in range(data.num_edges):
        a, b = data.edge_index[:, entry]
        ends = data.edge_index
        gone = ((ends[0] == a) & (ends[1] == b)) | ((ends[0] == b) & (ends[1] == a))
        before, after = (model(data.x, e)[row, 1] for e in (ends, ends[:, ~gone]))
        loss = (before - after).item()
        assert found.edge_contribution[entry].item() == pytest.approx(loss, abs=1e-9)
    shares = explain(model, data, 1, index=index, method="readout")
    assert torch.equal(found.node_contribution, shares.node_contribution)
    assert torch.equal(found.baseline, shares.baseline)
    wider = EgoSubgraphs(num_hops=2)(data.clone())
    with pytest.raises(ValueError, match=r"other ego-graphs .* num_hops is 1, max_nodes is 4"):
        explain(model, wider, 1, index=index, method="occlusion")


def test_shares_follow_the_nodes_and_entries_of_the_edge_index():
    model, data = make()
    found = explain(model, data, 0)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    new = torch.empty_like(order)
    new[order] = torch.arange(8)
    moved = explain(model, Data(x=data.x[order], edge_index=new[data.edge_index]), 0)
    torch.testing.assert_close(moved.node_contribution, found.node_contribution[order])
    torch.testing.assert_close(moved.edge_contribution, found.edge_contribution)

    # Given once, given three times, and a loop: an edge's share is split between its entries.
    half = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    messy = torch.cat([half, half[:, :1], half[:, :1].flip(0), torch.tensor([[2], [2]])], dim=1)
    other = explain(model, Data(x=data.x, edge_index=messy), 0)
    torch.testing.assert_close(other.node_contribution, found.node_contribution)
    assert other.edge_contribution[-1] == 0
    whole = found.edge_contribution[data.edge_index[0] < data.edge_index[1]] * 2
    torch.testing.assert_close(other.edge_contribution[1 : half.size(1)], whole[1:])
    torch.testing.assert_close(other.edge_contribution[-2], whole[0] / 3)


def test_nodes_are_explained_by_what_they_can_see():
    model, _ = make(task="node", num_layers=1)
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    data = Data(x=torch.randn(5, 3, dtype=torch.float64), edge_index=path)
    found = explain(model, data, 1, index=0)
    assert found.node_contribution[:2].abs().min() > 0
    assert not found.node_contribution[2:].any()
    assert found.edge_contribution[0] != 0
    assert not found.edge_contribution[1:].any()
    logit = model(data.x, data.edge_index)[0, 1]
    assert abs(found.baseline + found.node_contribution.sum() - logit) < 1e-9
    bias = share_of_biases(model, data, 1, index=0)
    assert found.baseline.item() == pytest.approx(bias.item())
    assert not found.layer_contribution[:, 1:].any()


@pytest.mark.parametrize("options", [{}, {"max_nodes": 3}, {"readout": "mean"}])
def test_smoothed_nodes_are_explained_by_the_nodes_around_them(options):
    model, data = make(task="node", restart=0.3, **options)
    cut = {"max_nodes": options.get("max_nodes")}  # then the matrix is not symmetric
    expected = model(data.x, data.edge_index)[2, 1]
    found = explain(model, data, 1, index=2)
    torch.testing.assert_close(found.prediction[0, 1], expected, rtol=1e-9, atol=1e-9)
    assert abs(found.baseline + found.node_contribution.sum() - expected) < 1e-9
    bias = share_of_biases(model, data, 1, index=2)
    assert found.baseline.item() == pytest.approx(bias.item())

    evidence = model.head(torch.cat(model.node_features(data.x, data.edge_index), dim=1))[:, 1:]
    alone = torch.diag(evidence.flatten().detach())  # one column for each node's evidence
    shares = dense_smoothing(alone, data.edge_index, 0.3, **cut)[2]
    readout = explain(model, data, 1, index=2, method="readout")
    torch.testing.assert_close(readout.node_contribution, shares, rtol=1e-9, atol=1e-9)
    assert (shares.abs() > 1e-3).sum() > 2
    features = torch.cat(model.node_features(data.x, data.edge_index), dim=1).detach()
    features.requires_grad_()
    logit = dense_smoothing(model.head(features)[:, 1:], data.edge_index, 0.3, **cut)[2, 0]
    (gradient,) = torch.autograd.grad(logit, features)
    expected = torch.stack([p.sum(1) for p in (features * gradient).split([3, 5, 5], dim=1)])
    torch.testing.assert_close(found.layer_contribution, expected.detach())


def test_a_graph_without_edges_or_with_stored_ego_graphs():
    model, data = make()
    lonely = explain(model, Data(x=data.x[:1], edge_index=torch.empty(2, 0, dtype=torch.long)))
    assert lonely.edge_mask.shape == (0,)
    assert lonely.node_mask.shape == (1, 1)
    cut = EgoSubgraphs(num_hops=1, max_nodes=2)(data.clone())
    expected = model(data.x, EgoGraphs.from_data(cut))
    torch.testing.assert_close(explain(model, cut).prediction, expected, rtol=1e-9, atol=1e-9)


def test_derivatives_need_no_leave():
    model, data = make()
    expected = explain(model, data, 1).node_contribution
    with torch.no_grad():
        assert torch.equal(explain(model, data, 1).node_contribution, expected)


def test_the_model_is_left_as_it_was():
    model, data = make(dropout=0.5)
    model.train()
    found = explain(model, data, 0)
    assert model.training
    assert all(p.grad is None for p in model.parameters())
    model.eval()
    torch.testing.assert_close(found.prediction, model(data.x, data.edge_index))


def test_mistakes_are_named():
    model, data = make()
    for arguments, message in (
        ({"method": "magic"}, "method is 'magic'"),
        ({"target": 2}, "target is 2"),
        ({"index": 0}, "index is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            explain(model, data, **arguments)
    with pytest.raises(ValueError, match="takes a KerGNN"):
        explain(torch.nn.Linear(3, 2), data)
    with pytest.raises(ValueError, match="x and edge_index"):
        explain(model, Data(x=data.x))
    nodes, _ = make(task="node")
    with pytest.raises(ValueError, match="index is None"):
        explain(nodes, data)
