"""``ecc``: filters that are functions of the edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_mean_pool
from torch_geometric.utils import scatter

from kergnn._checks import check_integer


class ECC(nn.Module):
    r"""Edge-conditioned convolution: Simonovsky and Komodakis, "Dynamic Edge-Conditioned Filters
    in Convolutional Neural Networks on Graphs", CVPR 2017.

    .. math::
        h_l(v) = \mathrm{ReLU}\Big(\mathrm{norm}\Big(R_l h_{l-1}(v)
        + \frac{1}{|N(v)|} \sum_{u \in N(v)} F_l(e_{uv})\, h_{l-1}(u)\Big)\Big), \qquad
        \hat y(G) = \mathrm{MLP}\Big(\frac{1}{|G|} \sum_{v \in G} h_L(v)\Big)

    where the filter network :math:`F_l` maps the features of an edge, such as the kind of a bond,
    to a matrix. Without edge features all edges have the feature 1.

    Unlike in the paper the graph is not coarsened between layers, and a node's own features have
    their own matrix :math:`R_l` instead of a loop with a feature of its own.

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions L.
        dropout: probability of dropping a hidden feature of the MLP.
        edge_channels: number of edge features.
        filter_channels: width of the hidden layer of :math:`F_l`.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,), edge
          features (E, edge_channels)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.0,
        edge_channels: int = 1,
        filter_channels: int = 16,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.edge_channels = check_integer("edge_channels", edge_channels, minimum=1)
        check_integer("filter_channels", filter_channels, minimum=1)
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for width in [in_channels] + [hidden_channels] * (num_layers - 1):
            self.convs.append(ECConv(width, hidden_channels, edge_channels, filter_channels))
            self.norms.append(BatchNorm(hidden_channels, allow_single_element=True))
        self.head = nn.Sequential(
            nn.Linear(hidden_channels, hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor,
        num_graphs: int,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """Return the logits."""
        if edge_attr is None:
            kinds, kind_of = x.new_ones(1, self.edge_channels), torch.zeros_like(edge_index[0])
        else:
            kinds, kind_of = torch.unique(edge_attr, dim=0, return_inverse=True)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index, kinds, kind_of)).relu()
        out: Tensor = self.head(global_mean_pool(x, batch, num_graphs))
        return out


class ECConv(nn.Module):
    r"""One convolution of :class:`ECC`, as PyG's ``NNConv`` with means.

    ``NNConv`` makes a matrix for every edge. Labels of edges have few values: here one is made for
    every value, and :math:`F(e)\, h` for every node and value, unless the edges are fewer.

    Args:
        in_channels: number of node features.
        out_channels: number of new node features.
        edge_channels: number of edge features.
        filter_channels: width of the hidden layer of the filter network.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), the different edge features
          (T, edge_channels), and which of them an edge has (E,)
        - **output:** (N, out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, edge_channels: int, filter_channels: int
    ) -> None:
        super().__init__()
        self.filters = nn.Sequential(
            nn.Linear(edge_channels, filter_channels),
            nn.ReLU(),
            nn.Linear(filter_channels, in_channels * out_channels),
        )
        self.root = nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, kinds: Tensor, kind_of: Tensor) -> Tensor:
        """Return the new features."""
        N, T = x.size(0), kinds.size(0)
        F = self.filters(kinds).view(T, *self.root.weight.T.shape)
        if edge_index.size(1) * x.size(1) >= N * T:
            filtered = torch.einsum("ni,tio->nto", x, F).flatten(0, 1)
            messages = filtered.index_select(0, edge_index[0] * T + kind_of)
        else:
            messages = torch.einsum("ei,eio->eo", x[edge_index[0]], F[kind_of])
        out: Tensor = self.root(x) + scatter(messages, edge_index[1], 0, N, reduce="mean")
        return out
