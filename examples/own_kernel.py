"""A kernel of one's own: nodes compared by a Gaussian of their distance, tested and trained."""

import torch
from torch import Tensor

from kergnn import EgoGraphs, KerGNN
from kergnn.data import Features, load_graphs
from kergnn.kernels import register_kernel
from kergnn.kernels.ragged import gather, propagate, sum_members
from kergnn.testing import KernelTests


def gaussian(x: Tensor, w: Tensor) -> Tensor:
    """Return the similarity of every row of x with every row of w."""
    square = x.square().sum(-1)[:, None] + w.square().sum(-1) - 2 * x @ w.T
    return torch.exp(-square / 2)


@register_kernel("gauss")
def gauss(x: Tensor, ego: EgoGraphs, adjacency: Tensor, attributes: Tensor, num_steps: int):
    r"""Return K_p = s^T (B^p kron A^p) s with s the Gaussian similarities."""
    similarity = gaussian(x, attributes.flatten(0, 1))
    S = gather(similarity.unflatten(1, attributes.shape[:2]), ego)
    U, K = S, [sum_members((S * S).sum(-1), ego)]
    for _ in range(num_steps):
        U = torch.einsum("tia,iab->tib", propagate(U, ego), adjacency)
        K.append(sum_members((S * U).sum(-1), ego))
    return torch.stack(K)


def spelled_out(A: Tensor, X: Tensor, B: Tensor, W: Tensor, p: int) -> Tensor:
    """Return the same for one ego-graph and one filter, as plainly as possible."""
    s = gaussian(X, W).T.reshape(-1)
    return s @ torch.kron(torch.matrix_power(B, p), torch.matrix_power(A, p)) @ s


class TestGauss(KernelTests):
    kernel = "gauss"
    oracle = spelled_out


if __name__ == "__main__":
    for name in (name for name in dir(TestGauss) if name.startswith("test_")):
        getattr(TestGauss(), name)()
        print(f"{name}: passed")

    torch.manual_seed(0)
    graphs = load_graphs("MUTAG")
    x = Features.fit("label", graphs, torch.arange(graphs.num_nodes))(graphs)
    ego = EgoGraphs.from_edge_index(graphs.edge_index, graphs.num_nodes)
    net = KerGNN(x.size(1), 8, 2, num_layers=1, kernel="gauss")
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for epoch in range(1, 31):
        optimizer.zero_grad()
        logits = net(x, ego, graphs.graph_of, graphs.num_graphs)
        loss = torch.nn.functional.cross_entropy(logits, graphs.y)
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: training loss {loss.item():.3f}")
