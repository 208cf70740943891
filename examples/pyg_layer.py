"""The layer among PyTorch Geometric's own: a GIN layer, then a KerGNN layer.

The task is to tell rings of six nodes from pairs of triangles, one to four of them in a graph. GIN
alone cannot do it: all nodes look alike and have two neighbours.
"""

import networkx as nx
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, Sequential, global_mean_pool
from torch_geometric.utils import from_networkx

from kergnn import KerGNNConv, calibrated_norms


def make_graphs(count: int) -> list[Data]:
    graphs = []
    for i in range(count):
        rings = [nx.cycle_graph(6)] if i % 2 == 0 else [nx.cycle_graph(3)] * 2
        data = from_networkx(nx.disjoint_union_all(rings * (1 + i % 4)))
        data.x, data.y = torch.ones(data.num_nodes, 4), torch.tensor([i % 2])
        graphs.append(data)
    return graphs


def make_model(last: nn.Module) -> nn.Module:
    return Sequential(
        "x, edge_index, batch",
        [
            (GIN(4, 16, num_layers=1), "x, edge_index -> x"),
            (last, "x, edge_index -> x"),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            (global_mean_pool, "x, batch -> x"),
            nn.Linear(16, 2),
        ],
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(make_graphs(80), batch_size=40, shuffle=True)
    (test,) = DataLoader(make_graphs(40), batch_size=40)
    for name, last in (("GIN", GIN(16, 16, num_layers=1)), ("KerGNN", KerGNNConv(16, 16))):
        net = make_model(last)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(20):
            for batch in loader:
                optimizer.zero_grad()
                logits = net(batch.x, batch.edge_index, batch.batch)
                nn.functional.cross_entropy(logits, batch.y).backward()
                optimizer.step()
        with calibrated_norms(net):  # batch statistics that fit the final weights
            for batch in loader:
                net(batch.x, batch.edge_index, batch.batch)
        right = net.eval()(test.x, test.edge_index, test.batch).argmax(1) == test.y
        print(f"GIN, then {name}: test accuracy {right.float().mean():.0%}")
