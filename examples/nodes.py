"""Classify the nodes of one graph, with classes known for some of them.

The graph is made by code: three groups of nodes that are connected more often within the group.
``kergnn train Cora`` does the same on a citation network.
"""

import torch
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.utils import stochastic_blockmodel_graph

from kergnn import EgoGraphs, KerGNN, calibrated_norms


def make_graph() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return features, edges and classes of 300 nodes; the features alone say little."""
    chances = torch.full((3, 3), 0.01) + 0.09 * torch.eye(3)
    edge_index = stochastic_blockmodel_graph([100, 100, 100], chances)
    y = torch.arange(3).repeat_interleave(100)
    return one_hot(y, 3) + 2 * torch.randn(300, 3), edge_index, y


def accuracy(logits: torch.Tensor, y: torch.Tensor, part: torch.Tensor) -> float:
    return (logits.argmax(1) == y)[part].float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    x, edge_index, y = make_graph()
    part = torch.randint(5, (len(y),))  # three fifths for training, one each for the rest
    train, validation, test = part < 3, part == 3, part == 4

    ego = EgoGraphs.from_edge_index(edge_index, len(y), max_nodes=20)
    net = KerGNN(3, 16, 3, num_layers=2, dropout=0.5, task="node")
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
    best = (0.0, 0.0, 0)
    for epoch in range(1, 101):
        net.train()
        optimizer.zero_grad()
        cross_entropy(net(x, ego)[train], y[train]).backward()
        optimizer.step()
        with calibrated_norms(net):  # batch statistics that fit the current weights
            net(x, ego)
        net.eval()
        with torch.no_grad():
            logits = net(x, ego)
        scores = accuracy(logits, y, validation), accuracy(logits, y, test), epoch
        best = max(best, scores, key=lambda s: s[0])

    print(f"by the features alone: {accuracy(x, y, test):.1%}")
    print(f"KerGNN, epoch {best[2]} selected by validation: test accuracy {best[1]:.1%}")
