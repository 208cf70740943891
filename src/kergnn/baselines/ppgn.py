"""``ppgn``: provably powerful graph networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.utils import to_dense_adj, to_dense_batch

from kergnn._checks import check_integer


class PPGNBlock(nn.Module):
    r"""One block: :math:`m_3\big(T \,\|\, m_1(T) \cdot m_2(T)\big)`, the product being that of
    matrices, channel by channel.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        mlp_layers: number of layers of :math:`m_1` and :math:`m_2`.

    Shapes:
        - **input:** (B, in_channels, n, n), pairs that exist (B, 1, n, n)
        - **output:** (B, out_channels, n, n), zero for pairs that do not exist
    """

    def __init__(self, in_channels: int, out_channels: int, mlp_layers: int = 2) -> None:
        super().__init__()
        self.left = _pairwise_mlp(in_channels, out_channels, mlp_layers)
        self.right = _pairwise_mlp(in_channels, out_channels, mlp_layers)
        self.skip = nn.Conv2d(in_channels + out_channels, out_channels, 1)

    def forward(self, T: Tensor, pairs: Tensor) -> Tensor:
        """Return the new channels."""
        # The biases make rows of nodes that do not exist; a product must not run through them.
        product = (self.left(T) * pairs) @ (self.right(T) * pairs)
        out: Tensor = self.skip(torch.cat([T, product], dim=1)) * pairs
        return out


class PPGN(nn.Module):
    r"""Maron et al., "Provably Powerful Graph Networks", NeurIPS 2019: as strong as the
    3-dimensional Weisfeiler-Lehman test, with matrices instead of triples.

    .. math::
        T_0 = [A, \mathrm{diag}(x^1), \ldots, \mathrm{diag}(x^d)], \qquad
        T_l = \mathrm{block}_l(T_{l-1}), \qquad
        \hat y(G) = \sum_{l=1}^{L} \mathrm{MLP}_l\Big(
        \sum_v T_l[v, v] \,\Big\|\, \sum_{u \neq v} T_l[u, v]\Big)

    Memory grows with the square of the number of nodes of the largest graph of a batch.

    Args:
        in_channels: number of node features.
        hidden_channels: channels of a block.
        out_channels: number of classes.
        num_layers: number of blocks L.
        dropout: probability of dropping a hidden feature of the MLPs of the readout.
        mlp_layers: number of layers of the MLPs within a block.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        dropout: float = 0.0,
        mlp_layers: int = 2,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        widths = [in_channels + 1] + [hidden_channels] * (num_layers - 1)
        self.blocks = nn.ModuleList(PPGNBlock(w, hidden_channels, mlp_layers) for w in widths)
        self.heads = nn.ModuleList(
            nn.Sequential(
                nn.Linear(2 * hidden_channels, hidden_channels),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(hidden_channels, out_channels),
            )
            for _ in widths
        )
        for module in self.blocks.modules():  # products of small numbers would be smaller still
            if isinstance(module, nn.Conv2d):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        size = max(1, int(torch.bincount(batch, minlength=1).max()))
        features, exists = to_dense_batch(x, batch, max_num_nodes=size, batch_size=num_graphs)
        adjacency = to_dense_adj(edge_index, batch, max_num_nodes=size, batch_size=num_graphs)
        adjacency, exists = adjacency.to(x.dtype), exists.to(x.dtype)
        pairs = (exists.unsqueeze(1) * exists.unsqueeze(2)).unsqueeze(1)
        diagonals = torch.diag_embed(features.transpose(1, 2))
        T = torch.cat([adjacency.unsqueeze(1), diagonals], dim=1)
        out = x.new_zeros(())
        for block, head in zip(self.blocks, self.heads, strict=True):
            T = block(T, pairs)
            loops = T.diagonal(dim1=2, dim2=3).sum(-1)
            others = T.sum((2, 3)) - loops
            out = out + head(torch.cat([loops, others], dim=1))
        return out


def _pairwise_mlp(in_channels: int, out_channels: int, num_layers: int) -> nn.Module:
    """The same MLP at every pair of nodes: convolutions with a 1 x 1 kernel."""
    parts: list[nn.Module] = []
    for channels in [in_channels] + [out_channels] * (num_layers - 1):
        parts += [nn.Conv2d(channels, out_channels, 1), nn.ReLU()]
    return nn.Sequential(*parts)
