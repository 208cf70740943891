"""``appnp``: predict, then propagate."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric import nn as pyg

from kergnn._checks import check_integer


class APPNP(nn.Module):
    r"""Gasteiger et al., "Predict then Propagate: Graph Neural Networks meet Personalized
    PageRank", ICLR 2019.

    .. math::
        Z_0 = H = \mathrm{MLP}(X), \qquad
        Z_{k+1} = (1 - \alpha)\, \tilde D^{-1/2} (A + I) \tilde D^{-1/2} Z_k + \alpha H, \qquad
        \hat Y = Z_K

    Args:
        in_channels: number of node features.
        hidden_channels: width of the MLP.
        out_channels: number of classes.
        num_layers: number of layers of the MLP.
        dropout: probability of dropping a feature before every layer. Unlike in the paper edges are
            not dropped: PyG's layer would drop more and more of them from step to step.
        num_steps: number of steps K; with 0 the graph is not used.
        alpha: probability of returning to the start.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E)
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        num_steps: int = 10,
        alpha: float = 0.1,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        channels, parts = in_channels, []
        for _ in range(num_layers - 1):
            parts += [nn.Dropout(dropout), nn.Linear(channels, hidden_channels), nn.ReLU()]
            channels = hidden_channels
        self.mlp = nn.Sequential(*parts, nn.Dropout(dropout), nn.Linear(channels, out_channels))
        num_steps = check_integer("num_steps", num_steps, minimum=0)
        self.propagation = pyg.APPNP(num_steps, alpha)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the logits of every node."""
        out: Tensor = self.propagation(self.mlp(x), edge_index)
        return out
