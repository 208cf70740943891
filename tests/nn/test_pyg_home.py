"""The layer where users of PyG expect it: in their containers, loaders and files."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import Sequential
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from torch_geometric.utils import erdos_renyi_graph

from kergnn import KerGNN, KerGNNConv, SeedLoader


def graph(num_nodes=40, seed=0):
    torch.manual_seed(seed)
    edge_index = erdos_renyi_graph(num_nodes, 0.08)
    return Data(x=torch.randn(num_nodes, 5), edge_index=edge_index, num_nodes=num_nodes)


def test_sequential():
    data = graph()
    first, second = KerGNNConv(5, 8), KerGNNConv(8, 3, kernel="drw")
    layers = [
        (first, "x, edge_index -> x"),
        torch.nn.ReLU(inplace=True),
        (second, "x, edge_index -> x"),
    ]
    model = Sequential("x, edge_index", layers)
    out = model(data.x, data.edge_index)
    expected = second(first(data.x, data.edge_index).relu(), data.edge_index)
    assert torch.equal(out, expected)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("num_hops", [1, 2])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("max_nodes", [None, 3])
@pytest.mark.parametrize("kernel", ["rw", "gcn"])
def test_mini_batches_give_what_the_whole_graph_gives(kernel, num_hops, num_layers, max_nodes):
    data = graph()
    data.x, data.y = data.x.double(), torch.arange(40)
    options = {"num_layers": num_layers, "num_hops": num_hops, "max_nodes": max_nodes}
    options["kernel"] = kernel
    model = KerGNN(5, 8, 3, task="node", **options).double().eval()
    whole = model(data.x, data.edge_index)

    def largest_error(reach):
        error, seen = 0.0, []
        for batch in SeedLoader(data, reach, batch_size=1):
            out = model(batch.x, batch.edge_index)[batch.seeds]
            nodes = batch.n_id[batch.seeds]
            assert torch.equal(batch.y[batch.seeds], nodes)
            error = max(error, (out - whole[nodes]).abs().max().item())
            seen += nodes.tolist()
        assert seen == list(range(40))
        return error

    assert largest_error(model.reach) < 1e-12
    if kernel == "rw" and (max_nodes is None or num_layers * num_hops == 1):  # less is not enough
        assert largest_error(model.reach - 1) > 1e-6


def test_mini_batches_reach_as_far_as_smoothing_does():
    ring = torch.arange(60)
    data = Data(x=torch.randn(60, 5).double(), edge_index=torch.stack([ring, (ring + 1) % 60]))
    model = KerGNN(5, 8, 3, task="node", num_layers=1, restart=0.1).double().eval()
    whole = model(data.x, data.edge_index)

    def error(reach):
        (batch,) = (b for b in SeedLoader(data, reach, batch_size=1) if b.n_id[b.seeds] == 30)
        return (model(batch.x, batch.edge_index)[batch.seeds] - whole[30]).abs().max()

    assert model.reach == 11
    assert error(model.reach) < 1e-12
    assert error(model.reach - 1) > 1e-12


def test_an_edge_given_once_counts_in_both_directions():
    path = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[1, 2, 2], [0, 1, 3]]))
    batches = list(SeedLoader(path, 1, batch_size=1))
    assert [batch.n_id.tolist() for batch in batches] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3]]
    assert batches[0].edge_index.tolist() == [[0, 1], [1, 0]]


def test_seeds_may_be_a_mask_and_shuffled():
    data = graph()
    data.edge_attr, data.note = torch.ones(data.num_edges, 1), "kept"
    mask = torch.arange(40) % 4 == 0
    loader = SeedLoader(data, 1, mask, batch_size=4, shuffle=True)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    found = torch.cat([batch.n_id[batch.seeds] for batch in batches])
    assert found.tolist() != sorted(found.tolist())
    assert sorted(found.tolist()) == list(range(0, 40, 4))
    assert batches[0].note == "kept"
    assert "edge_attr" not in batches[0]
    for seeds in (torch.tensor([7]), torch.tensor([], dtype=torch.long)):
        assert len(SeedLoader(data, 2, seeds)) == len(seeds)
    with pytest.raises(ValueError, match="num_hops is -1"):
        SeedLoader(data, -1)


@pytest.mark.skipif(
    not (WITH_PYG_LIB or WITH_TORCH_SPARSE), reason="NeighborLoader needs pyg-lib or torch-sparse"
)
def test_neighbor_loader():
    from torch_geometric.loader import NeighborLoader

    data = graph()
    model = KerGNN(5, 8, 3, num_layers=2, task="node").eval()
    whole = model(data.x, data.edge_index)
    loader = NeighborLoader(data, num_neighbors=[-1, -1], batch_size=7, subgraph_type="induced")
    seen = []
    for batch in loader:
        seeds = batch.n_id[: batch.batch_size]
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(out, whole[seeds], rtol=1e-4, atol=1e-5)
        seen += seeds.tolist()
    assert sorted(seen) == list(range(40))


def test_state_dict_by_torch_save(tmp_path):
    data = graph()
    one, other = KerGNN(5, 8, 3, task="node").eval(), KerGNN(5, 8, 3, task="node").eval()
    torch.save(one.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert torch.equal(one(data.x, data.edge_index), other(data.x, data.edge_index))


@pytest.fixture(scope="module")
def bfloat16():
    """Torch cannot multiply on every machine that says it can, and may even crash there."""
    code = "import torch; a = torch.ones(64, 64).bfloat16(); assert (a @ a == 64).all()"
    if subprocess.run([sys.executable, "-c", code], capture_output=True).returncode:
        pytest.skip("torch cannot multiply in bfloat16 here")


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("kernel", ["rw", "rw-step", "drw", "gcn"])
def test_autocast(kernel):
    data = graph()
    conv = KerGNNConv(5, 8, kernel=kernel, update="mlp")
    expected = conv(data.x, data.edge_index)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = conv(data.x, data.edge_index)
        loss = out.float().square().mean()
    torch.testing.assert_close(out.float(), expected, rtol=0.1, atol=0.1)
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in conv.parameters())


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own look at a tensor
@pytest.mark.parametrize("kernel", ["rw", "drw"])
def test_compile(kernel):
    data = graph(12)
    model = KerGNN(5, 4, 3, kernel=kernel, task="node")
    expected = model(data.x, data.edge_index)
    compiled = torch.compile(model, backend="eager")
    out = compiled(data.x, data.edge_index)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert model.convs[0].groups[0].attributes.grad.abs().sum() > 0
