"""How the time of a training step grows: with nodes, walk length, filter size, filters, hops."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from kergnn.bench.contenders import Epoch
from kergnn.egographs import EgoGraphs
from kergnn.nn import KerGNN

BASE: dict[str, int] = {
    "num_nodes": 20_000,
    "num_steps": 2,
    "filter_size": 6,
    "hidden_channels": 32,
    "num_hops": 1,
}
SWEEPS: dict[str, list[int]] = {
    "num_nodes": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
    "num_steps": [0, 1, 2, 3, 4, 5],
    "filter_size": [2, 4, 6, 8, 12, 16],
    "hidden_channels": [16, 32, 64, 128],
    "num_hops": [1, 2, 3],
}
EDGES_PER_NODE = 5


def make_node_epoch(
    num_nodes: int,
    num_steps: int = 2,
    filter_size: int = 6,
    hidden_channels: int = 32,
    num_hops: int = 1,
) -> Epoch:
    """Return a training step of a 2-layer node model on a random graph of five edges a node."""
    torch.manual_seed(0)
    edge_index = torch.randint(num_nodes, (2, EDGES_PER_NODE * num_nodes))
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes=10)
    x, y = torch.randn(num_nodes, 32), torch.randint(4, (num_nodes,))
    net = KerGNN(32, hidden_channels, 4, 2, filter_size, num_steps, num_hops=num_hops, task="node")
    optimizer = torch.optim.Adam(net.parameters(), fused=True)

    def epoch() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(net(x, ego), y))
        optimizer.step()

    return epoch


def sweep_points(quick: bool) -> list[tuple[str, int, dict[str, Any]]]:
    """Return what to measure: the swept name, its value, all arguments."""
    points = []
    for name, values in SWEEPS.items():
        for value in values[:4] if quick else values:
            points.append((name, value, {**BASE, name: value}))
    return points
