import copy

import pytest
import torch
from torch_geometric.explain import Explainer, ExplainerAlgorithm, GNNExplainer, PGExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from kergnn import KerGNN
from kergnn.baselines.gin import GIN
from kergnn.explain.pyg import explainable
from kergnn.nn.smoothing import NUM_SMOOTHING_STEPS
from kergnn.testing import random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
OPTIONS = [
    {},
    {"kernel": "rw-step", "normalize": "root"},
    {"kernel": "drw", "num_hops": 2, "update": None},
    {"kernel": {"rw": 3, "gcn": 2}, "normalize": "size"},
    {"normalize": None, "readout": "mean", "max_nodes": 3},
    {"readout": "log", "norm": "layer"},
]


def make(**options):
    torch.manual_seed(0)
    settings = {"filter_size": 3, "num_layers": 2, "engine": "torch", **options}
    return KerGNN(3, 5, 2, **settings).double().eval()


@pytest.mark.parametrize("options", OPTIONS)
def test_weights_of_one_change_nothing(options):
    model = make(**options)
    x, edge_index = random_graph(9, 0.3, seed=1)
    module = explainable(model)
    expected = model(x, edge_index)
    torch.testing.assert_close(module(x, edge_index), expected, rtol=1e-9, atol=1e-9)
    set_masks(module, torch.ones(edge_index.size(1)).double(), edge_index, apply_sigmoid=False)
    torch.testing.assert_close(module(x, edge_index), expected, rtol=1e-9, atol=1e-9)
    clear_masks(module)
    batch = torch.tensor([0] * 4 + [1] * 5)
    both = edge_index[:, batch[edge_index[0]] == batch[edge_index[1]]]
    torch.testing.assert_close(module(x, both, batch), model(x, both, batch, 2))


@pytest.mark.parametrize(
    "options", [o for o in OPTIONS if "max_nodes" not in o and "drw" not in str(o)]
)
def test_weights_of_zero_take_edges_away(options):
    """Without the third edge the graph has other ego-graphs, of other sizes."""
    model = make(**options)
    x, edge_index = random_graph(9, 0.3, seed=1)
    gone = torch.zeros(edge_index.size(1), dtype=torch.bool)
    half = edge_index.size(1) // 2
    gone[[2, 2 + half, 5, 5 + half]] = True
    module = explainable(model)
    set_masks(module, (~gone).double(), edge_index, apply_sigmoid=False)
    expected = model(x, edge_index[:, ~gone])
    torch.testing.assert_close(module(x, edge_index), expected, rtol=1e-9, atol=1e-9)
    assert (expected - model(x, edge_index)).abs().max() > 1e-3


@pytest.mark.parametrize("num_hops", [1, 2])
def test_smoothing_reads_the_weights_too(num_hops):
    model = make(task="node", restart=0.2, num_hops=num_hops)
    x, edge_index = random_graph(9, 0.3, seed=1)
    module = explainable(model)
    torch.testing.assert_close(module(x, edge_index), model(x, edge_index))
    gone = torch.zeros(edge_index.size(1), dtype=torch.bool)
    gone[[2, 2 + edge_index.size(1) // 2]] = True
    set_masks(module, (~gone).double(), edge_index, apply_sigmoid=False)
    expected = model(x, edge_index[:, ~gone])
    torch.testing.assert_close(module(x, edge_index), expected, rtol=1e-9, atol=1e-9)
    assert ExplainerAlgorithm._num_hops(module) == (2 + NUM_SMOOTHING_STEPS) * num_hops


def test_weights_have_a_derivative():
    module = explainable(make(num_hops=2))
    x, edge_index = random_graph(7, 0.4, seed=2)
    weight = torch.rand(edge_index.size(1), dtype=torch.float64).requires_grad_()

    def logit(w):
        set_masks(module, w, edge_index, apply_sigmoid=False)
        return module(x, edge_index)[0, 0]

    assert torch.autograd.gradcheck(logit, (weight,))


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # in PGExplainer
@pytest.mark.parametrize("kind", ["kergnn", "gin"])
def test_explainers_of_pyg_accept_the_models(kind):
    torch.manual_seed(0)
    if kind == "kergnn":
        model = make(num_layers=1, num_hops=2).float()
    else:
        model = GIN(3, 5, 2).eval()
    untouched = copy.deepcopy(model)
    module = explainable(model)
    x, edge_index = random_graph(7, 0.4, seed=2)
    x = x.float()
    found = Explainer(
        module,
        GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config=CONFIG,
    )(x, edge_index)
    assert found.edge_mask.shape == (edge_index.size(1),)
    assert found.edge_mask.max() > found.edge_mask.min()

    # PyG keeps the mask of GNNExplainer as a parameter, through which no other can be trained.
    module = explainable(copy.deepcopy(untouched))
    algorithm = PGExplainer(epochs=2)
    explainer = Explainer(
        module,
        algorithm,
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    for epoch in range(2):
        loss = algorithm.train(epoch, module, x, edge_index, target=torch.tensor([0]))
    assert loss == loss
    assert not module.model.training  # batch statistics stay as they are
    found = explainer(x, edge_index, target=torch.tensor([0]))
    assert found.edge_mask.max() > found.edge_mask.min()

    pytest.importorskip("captum")
    from torch_geometric.explain import CaptumExplainer

    module = explainable(copy.deepcopy(untouched))
    found = Explainer(
        module,
        CaptumExplainer("IntegratedGradients", n_steps=10),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config=CONFIG,
    )(x, edge_index)
    assert found.edge_mask.abs().max() > 0
    assert found.node_mask.shape == x.shape


def test_nodes_are_explained_too():
    module = explainable(make(task="node", num_layers=1, num_hops=2))
    x = torch.randn(6, 3, dtype=torch.float64)
    path = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    edge_index = torch.cat([path, path.flip(0)], dim=1)
    found = Explainer(
        module,
        GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config={**CONFIG, "task_level": "node"},
    )(x, edge_index, index=0)
    reached = found.edge_mask > 0
    assert set(edge_index[:, reached].flatten().tolist()) == {0, 1, 2}


def test_what_has_no_layers_is_refused():
    with pytest.raises(ValueError, match="no MessagePassing layer"):
        explainable(torch.nn.Linear(2, 2))
