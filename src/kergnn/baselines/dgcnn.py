"""``dgcnn``: nodes in a canonical order, and a 1-D convolution along it."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv, SortAggregation

from kergnn._checks import check_integer


class DGCNN(nn.Module):
    r"""Zhang et al., "An End-to-End Deep Learning Architecture for Graph Classification", AAAI
    2018.

    .. math::
        H_l = \tanh(\tilde D^{-1} \tilde A H_{l-1} W_l), \quad l = 1 \ldots L + 1, \qquad
        Z = \mathrm{sort}_k\big(H_1 \| \ldots \| H_{L+1}\big)

    with :math:`\tilde A = A + I`. :math:`H_{L+1}` has one channel, the nodes are sorted by it and
    cut or filled up to k; two 1-D convolutions run along this order, and an MLP follows.

    Args:
        in_channels: number of node features.
        hidden_channels: width of the graph convolutions but the last.
        out_channels: number of classes.
        num_layers: number of graph convolutions L before the one with a single channel.
        dropout: probability of dropping a hidden feature of the MLP.
        sort_size: number of nodes k that are kept, at least 10. The paper takes the number that
            60 % of the graphs do not exceed.
        dense_channels: width of the MLP.

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
        dropout: float = 0.5,
        sort_size: int = 30,
        dense_channels: int = 128,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        sort_size = check_integer("sort_size", sort_size, minimum=10)
        widths = [in_channels] + [hidden_channels] * num_layers + [1]
        self.maps = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.average = SimpleConv(aggr="mean", combine_root="self_loop")
        self.sort = SortAggregation(sort_size)
        total = sum(widths[1:])
        self.convolutions = nn.Sequential(
            nn.Conv1d(1, 16, kernel_size=total, stride=total),
            nn.ReLU(),
            nn.MaxPool1d(2, 2),
            nn.Conv1d(16, 32, kernel_size=5),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear(32 * (sort_size // 2 - 4), dense_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(dense_channels, out_channels),
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        layers = []
        for linear in self.maps:
            x = self.average(linear(x), edge_index).tanh()
            layers.append(x)
        h = torch.cat(layers, dim=1)
        if h.size(0):
            h = self.sort(h, batch, dim_size=num_graphs)
        else:
            h = h.new_zeros(num_graphs, self.sort.k * h.size(1))
        out: Tensor = self.head(self.convolutions(h.unsqueeze(1)))
        return out
