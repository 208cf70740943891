"""``gcnii``: deep GCN with initial residual and identity mapping."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GCN2Conv

from kergnn._checks import check_integer


class GCNII(nn.Module):
    r"""Chen et al., "Simple and Deep Graph Convolutional Networks", ICML 2020.

    .. math::
        H_0 = \mathrm{ReLU}(X W_{in}), \qquad
        H_l = \mathrm{ReLU}\Big(\big((1 - \alpha)\, \tilde D^{-1/2} (A + I) \tilde D^{-1/2} H_{l-1}
        + \alpha H_0\big) \big((1 - \beta_l) I + \beta_l W_l\big)\Big), \qquad
        \beta_l = \log(\theta / l + 1)

    and a linear map of :math:`H_L`.

    Args:
        in_channels: number of node features.
        hidden_channels: width of all layers.
        out_channels: number of classes.
        num_layers: number of convolutions L.
        dropout: probability of dropping a feature before every layer.
        alpha: share of :math:`H_0`; with 1 the graph is not used.
        theta: strength of the weights :math:`W_l`.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E)
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 8,
        dropout: float = 0.5,
        alpha: float = 0.1,
        theta: float = 0.5,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.first = nn.Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList(
            GCN2Conv(hidden_channels, alpha, theta, layer) for layer in range(1, num_layers + 1)
        )
        self.last = nn.Linear(hidden_channels, out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the logits of every node."""
        first = self.first(self.dropout(x)).relu()
        h = first
        for conv in self.convs:
            h = conv(self.dropout(h), first, edge_index).relu()
        out: Tensor = self.last(self.dropout(h))
        return out
