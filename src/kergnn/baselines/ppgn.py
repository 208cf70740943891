"""``ppgn``: provably powerful graph networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch_geometric.utils import degree, scatter

from kergnn._checks import check_integer


class PPGN(nn.Module):
    r"""Maron et al., "Provably Powerful Graph Networks", NeurIPS 2019: as strong as the
    3-dimensional Weisfeiler-Lehman test, with matrices instead of triples.

    .. math::
        T_0 = [D^{-1/2} A D^{-1/2}, \mathrm{diag}(x^1), \ldots, \mathrm{diag}(x^d)], \qquad
        T_l = m_3\big(T_{l-1} \,\|\, m_1(T_{l-1}) \cdot m_2(T_{l-1})\big), \qquad
        \hat y(G) = \sum_{l=1}^{L} \mathrm{MLP}_l\Big(
        \max_v T_l[v, v] \,\Big\|\, \max_{u \neq v} T_l[u, v]\Big)

    The product is that of matrices, channel by channel; the MLPs :math:`m_i` act on each entry.
    Normalised edges and maxima, as the authors' code has them, keep the products bounded on dense
    graphs. A maximum over nothing, as in a graph of one node, is zero. Memory grows with the square
    of the number of nodes of each graph.

    Args:
        in_channels: number of node features.
        hidden_channels: channels of a block.
        out_channels: number of classes.
        num_layers: number of blocks L.
        dropout: probability of dropping a hidden feature of the MLPs of the readout.
        mlp_layers: number of layers of :math:`m_1` and :math:`m_2`; :math:`m_3` is linear.

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

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        size = torch.bincount(batch, minlength=num_graphs)
        graph_of = torch.arange(num_graphs, device=x.device).repeat_interleave(size.square())
        # The pair (u, v) of a graph of n nodes is row u * n + v of its part of T.
        first, start = size.cumsum(0) - size, size.square().cumsum(0) - size.square()
        local = torch.arange(len(x), device=x.device) - first[batch]
        row_of = start[batch] + local * size[batch]
        loops, edges = row_of + local, row_of[edge_index[0]] + local[edge_index[1]]

        root = degree(edge_index[0], len(x), dtype=x.dtype).clamp(min=1).rsqrt()
        T = x.new_zeros(len(graph_of), 1 + x.size(1))
        T[edges, 0] = root[edge_index[0]] * root[edge_index[1]]
        T[loops, 1:] = x
        sizes: list[int] = size.tolist()
        apart = torch.ones(len(T), dtype=torch.bool, device=x.device)
        apart[loops] = False
        others = apart.nonzero().flatten()
        out = x.new_zeros(())
        for block, head in zip(self.blocks, self.heads, strict=True):
            T = block(T, sizes)
            pooled = [
                scatter(T.index_select(0, rows), graph_of[rows], 0, num_graphs, reduce="max")
                for rows in (loops, others)
            ]
            out = out + head(torch.cat(pooled, dim=1))
        return out


class PPGNBlock(nn.Module):
    """One block of :class:`PPGN`.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        mlp_layers: number of layers of the MLPs before the product.

    Shapes:
        - **input:** the entries of all matrices, row by row (Q, in_channels), and the number of
          rows of each matrix
        - **output:** (Q, out_channels)
    """

    def __init__(self, in_channels: int, out_channels: int, mlp_layers: int = 2) -> None:
        super().__init__()
        self.left = _mlp(in_channels, out_channels, mlp_layers)
        self.right = _mlp(in_channels, out_channels, mlp_layers)
        self.skip = nn.Linear(in_channels + out_channels, out_channels)
        for module in self.modules():  # products of small numbers would be smaller still
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, T: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the new entries."""
        product = channel_product(self.left(T), self.right(T), sizes)
        out: Tensor = self.skip(torch.cat([T, product], dim=1))
        return out


def channel_product(left: Tensor, right: Tensor, sizes: Sequence[int]) -> Tensor:
    """Multiply matrices channel by channel: (Q, c), (Q, c) -> (Q, c) with Q the sum of n * n."""
    product: Tensor = _ChannelProduct.apply(left, right, sizes)  # type: ignore[no-untyped-call]
    return product


class _ChannelProduct(Function):
    """The product and its derivative, without a node of autograd for every graph."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, sizes: Sequence[int]) -> Tensor:
        ctx.sizes = sizes
        ctx.save_for_backward(left, right)
        product = torch.empty_like(left)
        for A, B, C in zip(*(_matrices(t, sizes) for t in (left, right, product)), strict=True):
            C.copy_(A @ B)
        return product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        inputs = ctx.saved_tensors
        grads = [torch.empty_like(t) for t in inputs]
        tensors = (*inputs, gradient.contiguous(), *grads)
        for A, B, C, dA, dB in zip(*(_matrices(t, ctx.sizes) for t in tensors), strict=True):
            dA.copy_(C @ B.mT)
            dB.copy_(A.mT @ C)
        return grads[0], grads[1], None


def _matrices(entries: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """View the rows (Q, c) as one (c, n, n) for each graph."""
    parts = torch.split(entries, [n * n for n in sizes])
    return [part.view(n, n, -1).permute(2, 0, 1) for part, n in zip(parts, sizes, strict=True) if n]


def _mlp(in_channels: int, out_channels: int, num_layers: int) -> nn.Module:
    parts: list[nn.Module] = []
    for channels in [in_channels] + [out_channels] * (num_layers - 1):
        parts += [nn.Linear(channels, out_channels), nn.ReLU()]
    return nn.Sequential(*parts)
