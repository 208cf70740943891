"""``123gnn``: messages between nodes, between pairs and between triples."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, one_hot
from torch_geometric.nn import GraphConv, global_mean_pool

from kergnn._checks import check_integer
from kergnn.baselines.node_sets import NodeSets, node_sets


class GNN123(nn.Module):
    r"""The hierarchical 1-2-3-GNN of Morris et al., "Weisfeiler and Leman Go Neural: Higher-order
    Graph Neural Networks", AAAI 2019.

    .. math::
        f_k^{(t)}(s) = \mathrm{ELU}\Big(W_1 f_k^{(t-1)}(s)
        + W_2 \sum_{u \in N_L(s)} f_k^{(t-1)}(u)\Big), \qquad
        f_k^{(0)}(s) = \Big[\mathrm{iso}(s), \frac{1}{k} \sum_{v \in s} f_1(v)\Big]

    over nodes, sets of two and sets of three nodes; :math:`N_L(s)` is the local neighbourhood, see
    :class:`NodeSets`. An MLP reads the means over the sets of each size. As in the authors' code
    both set sizes start from the features of nodes, and only connected sets of three are used
    unless ``connected`` is false.

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions of each set size.
        dropout: probability of dropping a hidden feature of the MLP.
        connected: whether sets of three without a path through them are left out.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        connected: bool = True,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.connected = connected
        self.convs = nn.ModuleList()
        for first in (in_channels, hidden_channels + 2, hidden_channels + 4):
            widths = [first] + [hidden_channels] * (num_layers - 1)
            self.convs.append(nn.ModuleList(GraphConv(w, hidden_channels) for w in widths))
        self.head = nn.Sequential(
            nn.Linear(3 * hidden_channels, hidden_channels),
            nn.ELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor,
        num_graphs: int,
        sets: tuple[NodeSets, NodeSets] | None = None,
    ) -> Tensor:
        """Return the logits; ``sets`` spares the calls of :func:`node_sets`."""
        if sets is None:
            two = node_sets(edge_index, batch, 2)
            sets = two, node_sets(edge_index, batch, 3, self.connected)
        nodes = _convolve(self.convs[0], x, edge_index)
        means = [global_mean_pool(nodes, batch, num_graphs)]
        for convs, s in zip(self.convs[1:], sets, strict=True):
            kinds = 2 if s.members.size(1) == 2 else 4
            type_of = one_hot(s.num_edges, kinds).to(x.dtype)
            h = torch.cat([type_of, nodes[s.members].mean(1)], dim=1)
            h = _convolve(convs, h, s.edge_index)
            means.append(global_mean_pool(h, s.batch, num_graphs))
        out: Tensor = self.head(torch.cat(means, dim=1))
        return out


def _convolve(convs: nn.Module, h: Tensor, edge_index: Tensor) -> Tensor:
    for conv in convs.children():
        h = elu(conv(h, edge_index))
    return h
