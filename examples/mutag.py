"""Train a KerGNN on MUTAG with a plain PyTorch loop, as users of PyTorch Geometric write it.

Prints the test accuracy of a stratified 90/10 split for three seeds. ``kergnn train MUTAG`` does
the same and more: validation, early stopping, checkpoints, a run directory.
"""

import torch
from sklearn.model_selection import train_test_split
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from kergnn import EgoGraphs, EgoSubgraphs, KerGNN, calibrated_norms
from kergnn.data import Features, load_graphs


def predict(net: KerGNN, batch: Data) -> torch.Tensor:
    return net(batch.x, EgoGraphs.from_data(batch), batch.batch, batch.num_graphs)


def run(molecules: list[Data], seed: int) -> float:
    torch.manual_seed(seed)
    labels = [int(m.y) for m in molecules]
    train, test = train_test_split(molecules, test_size=0.1, stratify=labels, random_state=seed)
    net = KerGNN(in_channels=7, hidden_channels=32, out_channels=2, dropout=0.2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(50):
        net.train()
        for batch in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(predict(net, batch), batch.y).backward()
            optimizer.step()
    with calibrated_norms(net):
        for batch in DataLoader(train, batch_size=64):
            predict(net, batch)
    net.eval()
    (batch,) = DataLoader(test, batch_size=len(test))
    with torch.no_grad():
        return (predict(net, batch).argmax(1) == batch.y).float().mean().item()


if __name__ == "__main__":
    graphs = load_graphs("MUTAG")  # comes inside the grakel package
    x = Features.fit("label", graphs, torch.arange(graphs.num_nodes))(graphs)  # one-hot atoms
    molecules = [EgoSubgraphs(num_hops=1, max_nodes=10)(m) for m in graphs.to_data_list(x)]
    accuracies = [run(molecules, seed) for seed in range(3)]
    for seed, accuracy in enumerate(accuracies):
        print(f"seed {seed}: test accuracy {accuracy:.1%}")
    print(f"mean: {sum(accuracies) / len(accuracies):.1%}")
