"""What is timed: whole training epochs of KerGNN and of its peers, and single layers.

All models have 32 hidden channels and train with Adam on batches of 64 graphs, reshuffled each
epoch; KerGNN has filters of 6 nodes, walks of up to 2 steps and ego-graphs of 1 hop and at most 10
nodes. Every contender gets its batches cut by the same vectorised indexing; PyG's GIN is timed with
PyG's own ``DataLoader`` as well, as its users run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN, GIN, GraphSAGE, global_add_pool

from kergnn.batches import GraphBatches
from kergnn.bench.padded import pad, padded_random_walk
from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, cached_ego_graphs, default_recipe
from kergnn.edgebatches import EdgeBatches
from kergnn.egographs import EgoGraphs
from kergnn.engine import evaluate
from kergnn.machines import fit_machine, gram_matrix
from kergnn.models import build_model, model_info
from kergnn.nn import GraphFilters, KerGNN

DEFAULT_DATASETS = (
    "DD",
    "NCI1",
    "PROTEINS",
    "ENZYMES",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "REDDIT-BINARY",
    "COLLAB",
)
HIDDEN, FILTER_SIZE, NUM_STEPS, NUM_HOPS, MAX_NODES, BATCH_SIZE = 32, 6, 2, 1, 10, 64
PEERS = {"GIN": GIN, "GraphSAGE": GraphSAGE, "GCN": GCN}

Epoch: TypeAlias = Callable[[], None]


def epoch_names(num_layers: int) -> list[str]:
    """Return the names of the contenders of one depth, KerGNN first."""
    names = ["KerGNN", *PEERS, "GIN with DataLoader"]
    names += ["KerGNN-DRW"] if num_layers == 2 else []
    return names


def make_epoch(name: str, num_layers: int, graphs: GraphSet) -> Epoch:
    """Return a function that trains one epoch of a contender, or of any model by its name."""
    torch.manual_seed(0)
    features = Features.fit(default_recipe(graphs), graphs, torch.arange(graphs.num_nodes))
    x = features(graphs)
    if name.startswith("KerGNN"):
        return _kergnn_epoch("drw" if name == "KerGNN-DRW" else "rw", num_layers, graphs, x)
    if name == "GIN with DataLoader":
        return _loader_epoch(num_layers, graphs, x)
    if name in PEERS:
        return _peer_epoch(name, num_layers, graphs, x)
    return _model_epoch(name, num_layers, graphs, x)


def make_layers(graphs: GraphSet) -> dict[str, Epoch]:
    """Return functions that run one rw layer of 32 channels forward and backward on all graphs."""
    torch.manual_seed(0)
    filters = GraphFilters(HIDDEN, HIDDEN, FILTER_SIZE)
    ego = cached_ego_graphs(graphs, NUM_HOPS, MAX_NODES)
    x = torch.randn(graphs.num_nodes, HIDDEN)
    batches = GraphBatches(graphs, x, ego, torch.device("cpu"))
    inputs = [batches(which) for which in torch.split(torch.arange(graphs.num_graphs), BATCH_SIZE)]

    def over_batches(function: Callable[[Tensor, EgoGraphs], Tensor]) -> Epoch:
        def run() -> None:
            for batch in inputs:
                features = batch.x.detach().requires_grad_()
                out = function(features, batch.ego)
                torch.autograd.backward(out, out.detach())
            filters.zero_grad()

        return run

    def engine(name: str) -> Epoch:
        return over_batches(
            lambda x, ego: evaluate(
                "rw", x, ego, filters.adjacency(), filters.attributes, NUM_STEPS, engine=name
            )
        )

    paddings = {id(batch.ego): pad(batch.ego, MAX_NODES) for batch in inputs}
    return {
        "padded": over_batches(
            lambda x, ego: padded_random_walk(
                x, *paddings[id(ego)], filters.adjacency(), filters.attributes, NUM_STEPS
            )
        ),
        "torch": engine("torch"),
        "numba": engine("numba"),
        "matrix products": over_batches(lambda x, _: x @ filters.attributes.flatten(0, 1).T),
    }


def _orders(graphs: GraphSet) -> Iterator[Tensor]:
    yield from torch.split(torch.randperm(graphs.num_graphs), BATCH_SIZE)


def _kergnn_epoch(kernel: str, num_layers: int, graphs: GraphSet, x: Tensor) -> Epoch:
    ego = cached_ego_graphs(graphs, NUM_HOPS, MAX_NODES)
    batches = GraphBatches(graphs, x, ego, torch.device("cpu"))
    net = KerGNN(
        x.size(1), HIDDEN, graphs.num_classes, num_layers, FILTER_SIZE, NUM_STEPS, kernel, NUM_HOPS
    )
    optimizer = torch.optim.Adam(net.parameters(), fused=True)

    def epoch() -> None:
        for which in _orders(graphs):
            batch = batches(which)
            _step(optimizer, net(batch.x, batch.ego, batch.batch, batch.num_graphs), batch.y)

    return epoch


def _peer_epoch(name: str, num_layers: int, graphs: GraphSet, x: Tensor) -> Epoch:
    net, head, optimizer = _peer(name, num_layers, graphs, x)
    batches = EdgeBatches(graphs, x, torch.device("cpu"))

    def epoch() -> None:
        for which in _orders(graphs):
            batch = batches(which)
            out = net(batch.x, batch.edge_index)
            pooled = global_add_pool(out, batch.batch, batch.num_graphs)
            _step(optimizer, head(pooled), batch.y)

    return epoch


def _model_epoch(name: str, num_layers: int, graphs: GraphSet, x: Tensor) -> Epoch:
    """Return an epoch of any network by its name; of a kernel, its Gram matrix and machine."""
    config = RunConfig(
        model=name, hidden_channels=HIDDEN, num_layers=num_layers, filter_size=FILTER_SIZE
    )
    if model_info(name).kind == "kernel":
        everything = torch.arange(graphs.num_graphs)

        def fit() -> None:
            K = gram_matrix(config, graphs, x, everything, folder=None)
            fit_machine(config, K, graphs.y[everything], graphs.num_classes)

        return fit
    net = build_model(config, x.size(1), graphs.num_classes, "graph")
    optimizer = torch.optim.Adam(net.parameters(), fused=True)
    batches = EdgeBatches(graphs, x, torch.device("cpu"))

    def epoch() -> None:
        for which in _orders(graphs):
            batch = batches(which)
            _step(optimizer, net(*batch.inputs), batch.y)

    return epoch


def _loader_epoch(num_layers: int, graphs: GraphSet, x: Tensor) -> Epoch:
    net, head, optimizer = _peer("GIN", num_layers, graphs, x)
    data: list[Data] = graphs.to_data_list(x)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True)

    def epoch() -> None:
        for batch in loader:
            pooled = global_add_pool(net(batch.x, batch.edge_index), batch.batch, batch.num_graphs)
            _step(optimizer, head(pooled), batch.y)

    return epoch


def _peer(
    name: str, num_layers: int, graphs: GraphSet, x: Tensor
) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    net = PEERS[name](x.size(1), HIDDEN, num_layers)
    head = nn.Linear(HIDDEN, graphs.num_classes)
    parameters = [*net.parameters(), *head.parameters()]
    return net, head, torch.optim.Adam(parameters, fused=True)


def _step(optimizer: torch.optim.Optimizer, logits: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    torch.autograd.backward(cross_entropy(logits, y))
    optimizer.step()
