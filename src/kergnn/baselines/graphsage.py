"""``graphsage``: sample and aggregate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, global_max_pool

from kergnn._checks import check_choice, check_integer


class GraphSAGE(nn.Module):
    r"""Hamilton et al., "Inductive Representation Learning on Large Graphs", NeurIPS 2017, for
    graphs as Errica et al. (ICLR 2020) set it up: all neighbours, no sampling.

    .. math::
        h_l(v) = \mathrm{ReLU}\Big(W_l h_{l-1}(v)
        + U_l \mathop{\mathrm{aggr}}_{u \in N(v)} h_{l-1}(u)\Big), \qquad
        \hat y(G) = \mathrm{MLP}\Big(\max_{v \in G} \mathop{\|}_{l=1}^{L} h_l(v)\Big)

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions L.
        dropout: probability of dropping a hidden feature of the MLP.
        aggr: ``"mean"``, ``"max"`` or ``"sum"`` over neighbours.

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
        aggr: str = "mean",
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        check_choice("aggr", aggr, ["mean", "max", "sum"])
        widths = [in_channels] + [hidden_channels] * (num_layers - 1)
        self.convs = nn.ModuleList(SAGEConv(width, hidden_channels, aggr=aggr) for width in widths)
        self.head = nn.Sequential(
            nn.Linear(num_layers * hidden_channels, hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits."""
        layers = []
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            layers.append(x)
        out: Tensor = self.head(global_max_pool(torch.cat(layers, dim=1), batch, num_graphs))
        return out
