"""Time the layer and a training epoch against a padded formulation and against PyG's GIN.

    python benchmarks/layer.py NCI1 DD --layers 1 2 3 --repeat 5

Everything is measured in one process, the contestants taking turns, and the smallest of the
repetitions is reported: other work on the machine disturbs all alike and only ever adds time.
Data sets are read from ``--root``, and downloaded to it from ``--url`` where they are missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, global_add_pool

from kergnn import EgoGraphs, KerGNN
from kergnn.engine import evaluate
from kergnn.nn import GraphFilters

HIDDEN, FILTER_SIZE, NUM_STEPS, MAX_NODES, BATCH = 32, 6, 2, 10, 64


class Graphs:
    """A data set cut into graphs once, so that a batch is a concatenation of ready pieces."""

    def __init__(self, dataset: TUDataset) -> None:
        data, slices = dataset._data, dataset.slices
        edges = slices["edge_index"].diff()
        nodes = slices["x"].diff() if data.x is not None else _num_nodes(dataset)
        x = data.x if data.x is not None else torch.ones(int(nodes.sum()), 1)
        offset = torch.cat([nodes.new_zeros(1), nodes.cumsum(0)])
        union = data.edge_index + offset[:-1].repeat_interleave(edges)
        start = time.perf_counter()
        ego = EgoGraphs.from_edge_index(union, len(x), max_nodes=MAX_NODES)
        self.index_seconds = time.perf_counter() - start

        of_node = torch.arange(len(nodes)).repeat_interleave(nodes)
        of_member = of_node[ego.center]
        members = of_member.bincount(minlength=len(nodes))
        of_row = of_member[ego.edge_index[0]]
        self.y = data.y
        self.sizes = nodes
        self.x = x.split(nodes.tolist())
        self.edge_index = data.edge_index.split(edges.tolist(), dim=1)
        self.edges = edges
        self.members = members
        self.index = (ego.index - offset[of_member]).split(members.tolist())
        self.size = ego.size.split(nodes.tolist())
        self.hop = ego.hop.split(members.tolist())
        self.degree = ego.degree.split(members.tolist())
        self.neighbor = ego.neighbor.split(of_row.bincount(minlength=len(nodes)).tolist())

    def batches(self, seed: int) -> Iterator[Tensor]:
        order = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed))
        yield from order.split(BATCH)

    def common(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return features, first node of every graph, graph of every node, labels."""
        sizes = self.sizes[ids]
        first = sizes.cumsum(0) - sizes
        batch = torch.arange(len(ids)).repeat_interleave(sizes)
        return torch.cat([self.x[i] for i in ids.tolist()]), first, batch, self.y[ids]

    def ego(self, ids: Tensor, first: Tensor) -> EgoGraphs:
        names = ("index", "size", "hop", "degree", "neighbor")
        tensors = [torch.cat([getattr(self, name)[i] for i in ids.tolist()]) for name in names]
        tensors[0] += first.repeat_interleave(self.members[ids])
        return EgoGraphs(*tensors)

    def edge(self, ids: Tensor, first: Tensor) -> Tensor:
        edge_index = torch.cat([self.edge_index[i] for i in ids.tolist()], dim=1)
        return edge_index + first.repeat_interleave(self.edges[ids])


def _num_nodes(dataset: TUDataset) -> Tensor:
    return torch.as_tensor(dataset._data.num_nodes)


def padded(
    x: Tensor, node: Tensor, mask: Tensor, A: Tensor, B: Tensor, W: Tensor, num_steps: int
) -> Tensor:
    """Evaluate the paper's formula on ego-graphs filled up to the same size n.

    node and mask are (N, n), A (N, n, n), B (D, m, m), W (D, m, d); returns (P + 1, N, D).
    """
    left = right = x[node] * mask.unsqueeze(-1)  # (N, n, d)
    similarity = torch.einsum("nad,imd->nima", left, W)
    values = [(similarity * similarity).sum((2, 3))]
    weights = W
    for _ in range(num_steps):
        right = torch.einsum("nab,nbd->nad", A, right)
        weights = torch.einsum("iab,ibd->iad", B, weights)
        values.append((similarity * torch.einsum("nad,imd->nima", right, weights)).sum((2, 3)))
    return torch.stack(values)


def pad(ego: EgoGraphs) -> tuple[Tensor, Tensor, Tensor]:
    """Return node (N, n), mask (N, n) and adjacency (N, n, n)."""
    position = torch.arange(ego.num_members) - ego.ptr[ego.center]
    node = torch.zeros(ego.num_nodes, MAX_NODES, dtype=torch.long)
    mask = torch.zeros(ego.num_nodes, MAX_NODES)
    A = torch.zeros(ego.num_nodes, MAX_NODES, MAX_NODES)
    node[ego.center, position], mask[ego.center, position] = ego.index, 1.0
    row, col = ego.edge_index
    A[ego.center[row], position[row], position[col]] = 1.0
    return node, mask, A


def layers(graphs: Graphs, num_batches: int) -> dict[str, Callable[[], None]]:
    """Forward and backward of one layer with 32 input features, over the first batches."""
    filters = GraphFilters(HIDDEN, HIDDEN, FILTER_SIZE)
    inputs = []
    for ids in list(graphs.batches(0))[:num_batches]:
        _, first, batch, _ = graphs.common(ids)
        inputs.append((torch.randn(len(batch), HIDDEN, requires_grad=True), graphs.ego(ids, first)))
    paddings = [pad(ego) for _, ego in inputs]

    def run(function: Callable[..., Tensor]) -> None:
        for (x, ego), padding in zip(inputs, paddings, strict=True):
            K = function(x, ego, padding)
            K.backward(K.detach())
            x.grad = None
        filters.zero_grad()

    def engine(name: str) -> Callable[[], None]:
        return lambda: run(
            lambda x, ego, _: evaluate(
                "rw", x, ego, filters.adjacency(), filters.attributes, NUM_STEPS, engine=name
            )
        )

    def product() -> None:
        for x, _ in inputs:
            Z = x @ filters.attributes.flatten(0, 1).T
            Z.backward(Z.detach())
            x.grad = None
        filters.zero_grad()

    return {
        "padded": lambda: run(
            lambda x, _, padding: padded(
                x, *padding, filters.adjacency(), filters.attributes, NUM_STEPS
            )
        ),
        "torch": engine("torch"),
        "numba": engine("numba"),
        "matrix products alone": product,
    }


def epochs(graphs: Graphs, dataset: TUDataset, num_layers: int) -> dict[str, Callable[[], None]]:
    """One epoch of training: batches, forward, backward, step."""
    channels = graphs.x[0].size(1)
    classes = int(graphs.y.max()) + 1
    kernel_net = KerGNN(channels, HIDDEN, classes, num_layers, FILTER_SIZE, NUM_STEPS)
    gin, head = GIN(channels, HIDDEN, num_layers), nn.Linear(HIDDEN, classes)
    kernel_optimizer = torch.optim.Adam(kernel_net.parameters(), fused=True)
    gin_optimizer = torch.optim.Adam([*gin.parameters(), *head.parameters()], fused=True)
    loader = DataLoader(_with_features(dataset), batch_size=BATCH, shuffle=True)

    def step(optimizer: torch.optim.Optimizer, out: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        cross_entropy(out, y).backward()
        optimizer.step()

    def kergnn() -> None:
        for ids in graphs.batches(0):
            x, first, batch, y = graphs.common(ids)
            step(kernel_optimizer, kernel_net(x, graphs.ego(ids, first), batch, len(ids)), y)

    def gin_same_batches() -> None:
        for ids in graphs.batches(0):
            x, first, batch, y = graphs.common(ids)
            nodes = gin(x, graphs.edge(ids, first))
            step(gin_optimizer, head(global_add_pool(nodes, batch, len(ids))), y)

    def gin_loader() -> None:
        for data in loader:
            nodes = gin(data.x, data.edge_index)
            step(gin_optimizer, head(global_add_pool(nodes, data.batch, data.num_graphs)), data.y)

    return {
        f"KerGNN-{num_layers}": kergnn,
        f"GIN-{num_layers} (same batches)": gin_same_batches,
        f"GIN-{num_layers} (DataLoader)": gin_loader,
    }


def _with_features(dataset: TUDataset) -> list[object]:
    graphs = list(dataset)
    for graph in graphs:
        if graph.x is None:
            graph.x = torch.ones(graph.num_nodes, 1)
    return graphs


def measure(
    contestants: dict[str, Callable[[], None]], repeat: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the smallest time of each in seconds, after one run to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeat + 1):
        for name, function in contestants.items():
            start = clock()
            function()
            if turn:
                seconds[name].append(clock() - start)
    return {name: min(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--layers", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--only-epochs", action="store_true", help="leave the single layer out")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--root", default="/tmp/dev/tu")
    parser.add_argument("--url", default="file:///work/shared/datasets/tu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--batches", type=int, default=20, help="batches for the single layer")
    parser.add_argument(
        "--cpu-time", action="store_true",
        help="time of the processor, for a busy machine; use it with --threads 1",
    )  # fmt: skip
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    TUDataset.url = arguments.url
    torch.manual_seed(0)
    for name in arguments.datasets:
        dataset = TUDataset(arguments.root, name)
        graphs = Graphs(dataset)
        print(f"{name}: {len(dataset)} graphs, ego index in {graphs.index_seconds:.2f} s")
        if not arguments.only_epochs:
            times = measure(layers(graphs, arguments.batches), arguments.repeat, clock)
            for contestant, seconds in times.items():
                print(f"  layer  {contestant:25} {seconds:8.3f} s  "
                      f"{times['padded'] / seconds:6.1f} times padded")  # fmt: skip
        for num_layers in arguments.layers:
            times = measure(epochs(graphs, dataset, num_layers), arguments.repeat, clock)
            own = next(iter(times.values()))
            for contestant, seconds in times.items():
                print(
                    f"  epoch  {contestant:25} {seconds:8.3f} s  KerGNN / it {own / seconds:5.2f}"
                )


if __name__ == "__main__":
    main()
