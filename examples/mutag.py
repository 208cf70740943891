"""Train a KerGNN on MUTAG with a plain loop; the data come inside the grakel package.

Prints the test accuracy of a stratified 90/10 split for three seeds, and the filters' edges.
"""

from importlib.resources import files

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from kergnn import EgoGraphs, EgoSubgraphs, KerGNN, calibrated_norms


def read_mutag() -> list[Data]:
    """Read the TU-format files: 188 molecules, 7 atom types, mutagenic or not."""
    folder = files("grakel") / "tests" / "data" / "MUTAG"

    def column(name: str) -> torch.Tensor:
        text = (folder / f"MUTAG_{name}.txt").read_text()
        return torch.from_numpy(np.fromstring(text.replace("\n", ","), dtype=np.int64, sep=","))

    graph_of = column("graph_indicator") - 1
    atoms = torch.nn.functional.one_hot(column("node_labels")).float()
    edges = column("A").reshape(-1, 2).T - 1
    labels = (column("graph_labels") > 0).long()
    graphs = []
    for g, label in enumerate(labels):
        nodes = (graph_of == g).nonzero().flatten()
        edge_index = edges[:, graph_of[edges[0]] == g] - nodes[0]
        graphs.append(Data(x=atoms[nodes], edge_index=edge_index, y=label.view(1)))
    return graphs


def predict(net: KerGNN, batch: Data) -> torch.Tensor:
    return net(batch.x, EgoGraphs.from_data(batch), batch.batch, batch.num_graphs)


def run(graphs: list[Data], seed: int) -> tuple[float, KerGNN]:
    torch.manual_seed(seed)
    labels = [int(g.y) for g in graphs]
    train, test = train_test_split(graphs, test_size=0.1, stratify=labels, random_state=seed)
    net = KerGNN(in_channels=7, hidden_channels=32, out_channels=2, dropout=0.2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    net.train()
    for _ in range(60):
        for batch in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(predict(net, batch), batch.y).backward()
            optimizer.step()
    with calibrated_norms(net):
        for batch in DataLoader(train, batch_size=len(train)):
            predict(net, batch)
    net.eval()
    (batch,) = DataLoader(test, batch_size=len(test))
    with torch.no_grad():
        return (predict(net, batch).argmax(1) == batch.y).float().mean().item(), net


if __name__ == "__main__":
    molecules = [EgoSubgraphs(num_hops=1, max_nodes=10)(g) for g in read_mutag()]
    accuracies = []
    for seed in range(3):
        accuracy, net = run(molecules, seed)
        accuracies.append(accuracy)
        print(f"seed {seed}: test accuracy {accuracy:.1%}")
    print(f"mean: {sum(accuracies) / len(accuracies):.1%}")
    adjacency, _ = net.convs[0].filters()
    print("first filter, edge weights:", adjacency[0].round(decimals=2).tolist(), sep="\n")
