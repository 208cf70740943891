from itertools import chain

import pytest
import torch

from kergnn import EgoGraphs, KerGNN, calibrated_norms
from kergnn.batches import GraphBatches
from kergnn.data import GraphSet
from kergnn.explain import Importance, filter_importance, ranked
from kergnn.explain.filters import silenced_logits
from kergnn.testing import random_graph

SIZES = [6, 9, 4, 7, 5, 8]


def make(task="graph", **options):
    """A model and random graphs, one of them to be left out of the importance."""
    parts = [random_graph(n, 0.5, seed=n) for n in SIZES]
    start = [sum(SIZES[:i]) for i in range(len(SIZES))]
    edge_index = torch.cat([e + s for (_, e), s in zip(parts, start, strict=True)], dim=1)
    x = torch.cat([x for x, _ in parts]).float()
    count = len(SIZES) if task == "graph" else sum(SIZES)
    y = torch.arange(count) % 2
    graphs = GraphSet("some", task, torch.tensor(SIZES), edge_index, y, ("a", "b"))
    ego = EgoGraphs.from_edge_index(edge_index, graphs.num_nodes, 1, 6)
    torch.manual_seed(0)
    options = {"hidden_channels": 4, "filter_size": 3, "num_layers": 2, **options}
    model = KerGNN(x.size(1), out_channels=2, task=task, **options)
    batches = GraphBatches(graphs, x, ego, torch.device("cpu"))
    with calibrated_norms(model):  # so that ReLUs are neither all dead nor all open
        model(*batches(torch.arange(len(SIZES))).inputs[: 4 if task == "graph" else 2])
    return model, batches


def by_hand(model, batch, layer, index):
    """The logits of the model itself, while a hook sets one column of kernel values to zero."""
    conv = model.convs[layer]
    whole = conv.kernel_values

    def silent(x, ego):
        values = whole(x, ego).clone()
        values[:, index] = 0
        return values

    conv.kernel_values = silent
    try:
        with torch.no_grad():
            return model(*batch.inputs[: 4 if model.task == "graph" else 2])
    finally:
        del conv.kernel_values


OPTIONS = [
    {},
    {"update": None, "norm": None},
    {"update": "linear", "norm": "layer", "readout": "mean", "kernel": {"rw": 2, "gcn": 2}},
    {"task": "node", "kernel": "drw", "input_channels": 5},
    {"kernel": "rw-step", "num_layers": 3},
    {"readout": "log", "norm": "layer"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_silencing_a_filter_changes_exactly_what_the_importance_says(options):
    model, batches = make(**options)
    which = torch.tensor([0, 1, 3, 4, 5])
    found = filter_importance(model, batches, which)
    model.eval()
    task = model.task
    batch = batches(which if task == "graph" else torch.arange(len(SIZES)))
    rows = slice(None) if task == "graph" else which
    y = batches.y[which]
    with torch.no_grad():
        logits = model(*batch.inputs[: 4 if task == "graph" else 2])[rows]
    accuracy = (logits.argmax(1) == y).double().mean()
    changed = 0
    for layer, conv in enumerate(model.convs):
        assert len(found[layer]) == conv.out_channels
        for i, one in enumerate(found[layer]):
            assert (one.layer, one.index) == (layer, i)
            without = by_hand(model, batch, layer, i)[rows]
            drop = accuracy - (without.argmax(1) == y).double().mean()
            assert one.drop == pytest.approx(float(drop), abs=1e-12)
            assert one.contribution == pytest.approx(
                float((logits - without).abs().mean()), rel=1e-4, abs=1e-6
            )
            changed += one.contribution > 1e-4
    assert changed > 2


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_silenced_filter_is_one_without_attributes(options):
    """All kernels are sums of products with similarities: zero attributes give zero values."""
    model, batches = make(**options)
    batch = batches(torch.arange(len(SIZES)))
    _, without = silenced_logits(model, batch)
    last = len(model.convs) - 1
    with torch.no_grad():
        model.convs[last].groups[0].attributes[1] = 0
    logits, _ = silenced_logits(model, batch)
    torch.testing.assert_close(logits, without[last][1], rtol=1e-4, atol=1e-5)


def test_the_model_is_left_as_it_was():
    model, batches = make(dropout=0.5)
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = filter_importance(model, batches, torch.arange(4))
    assert model.training
    assert first == filter_importance(model, batches, torch.arange(4))  # no dropout inside
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_importance_does_not_depend_on_how_graphs_are_cut_into_pieces(monkeypatch):
    model, batches = make()
    whole = filter_importance(model, batches, torch.arange(6), "macro_f1")
    monkeypatch.setattr("kergnn.prediction._NODES_AT_ONCE", 10)
    done = []
    parts = filter_importance(
        model, batches, torch.arange(6), "macro_f1", lambda *numbers: done.append(numbers)
    )
    assert len(done) > 2
    assert done[-1] == (6, 6)
    for a, b in zip(chain(*whole), chain(*parts), strict=True):
        assert a.drop == pytest.approx(b.drop)
        assert a.contribution == pytest.approx(b.contribution, rel=1e-4)


def test_the_largest_drop_comes_first_and_ties_go_by_contribution():
    rows = [Importance(0, 0, 0.0, 0.2), Importance(0, 1, 0.1, 0.1), Importance(0, 2, 0.0, 0.7)]
    rows.append(Importance(0, 3, -0.1, 9.0))
    assert [one.index for one in ranked(rows)] == [1, 2, 0, 3]


def test_nothing_to_look_at():
    model, batches = make()
    with pytest.raises(ValueError, match="which is empty"):
        filter_importance(model, batches, torch.arange(0))
