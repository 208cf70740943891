"""``diffpool``: a hierarchy of soft clusterings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, DenseSAGEConv, dense_diff_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch

from kergnn._checks import check_integer


class DiffPool(nn.Module):
    r"""Ying et al., "Hierarchical Graph Representation Learning with Differentiable Pooling",
    NeurIPS 2018.

    .. math::
        Z_l = \mathrm{GNN}^{embed}_l(A_l, H_l), \quad
        S_l = \mathrm{softmax}(\mathrm{GNN}^{assign}_l(A_l, H_l)), \quad
        H_{l+1} = S_l^T Z_l, \quad A_{l+1} = S_l^T A_l S_l

    and an MLP on the maxima over the nodes of :math:`Z_0, \ldots, Z_L`. After a forward pass
    ``auxiliary_loss`` holds what the training objective must have added to it: the link loss
    :math:`\|A_l - S_l S_l^T\|_F` (a mean over entries) and the entropy of :math:`S_l`.

    Args:
        in_channels: number of node features.
        hidden_channels: width of all convolutions.
        out_channels: number of classes.
        num_layers: number of clusterings L.
        dropout: probability of dropping a hidden feature of the MLP.
        num_clusters: number of clusters of the first clustering; each further one has a quarter.
        num_convs: number of convolutions of a GNN.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    auxiliary_loss: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        num_clusters: int = 16,
        num_convs: int = 3,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        num_clusters = check_integer("num_clusters", num_clusters, minimum=1)
        self.embed, self.assign = nn.ModuleList(), nn.ModuleList()
        channels, width = in_channels, num_convs * hidden_channels
        for _ in range(num_layers):
            self.embed.append(_DenseGNN(channels, hidden_channels, num_convs))
            assign = _DenseGNN(channels, hidden_channels, num_convs)
            self.assign.append(_Assignment(assign, nn.Linear(width, num_clusters)))
            channels, num_clusters = width, max(num_clusters // 4, 1)
        self.last = _DenseGNN(channels, hidden_channels, num_convs)
        self.head = nn.Sequential(
            nn.Linear((num_layers + 1) * width, hidden_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_channels, out_channels),
        )
        self.auxiliary_loss = torch.zeros(())

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return the logits and leave ``auxiliary_loss`` behind."""
        size = max(1, int(torch.bincount(batch, minlength=1).max()))
        h, exists = to_dense_batch(x, batch, max_num_nodes=size, batch_size=num_graphs)
        A = to_dense_adj(edge_index, batch, max_num_nodes=size, batch_size=num_graphs).to(x.dtype)
        loss, maxima = x.new_zeros(()), []
        for embed, assign in zip(self.embed, self.assign, strict=True):
            Z = embed(h, A, exists)
            maxima.append(Z.amax(1))
            h, A, link, entropy = dense_diff_pool(Z, A, assign(h, A, exists), exists)
            exists = exists.any(1, keepdim=True).expand(-1, h.size(1))
            loss = loss + link + entropy
        maxima.append(self.last(h, A, exists).amax(1))
        self.auxiliary_loss = loss
        out: Tensor = self.head(torch.cat(maxima, dim=1))
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Copy the loss as a number: what led to it cannot be copied."""
        return {**self.__dict__, "auxiliary_loss": self.auxiliary_loss.detach()}


class _DenseGNN(nn.Module):
    """Convolutions of padded graphs; returns the outputs of all, zero where there is no node."""

    def __init__(self, in_channels: int, hidden_channels: int, num_convs: int) -> None:
        super().__init__()
        widths = [in_channels] + [hidden_channels] * (num_convs - 1)
        self.convs = nn.ModuleList(DenseSAGEConv(w, hidden_channels, bias=False) for w in widths)
        self.norms = nn.ModuleList(
            BatchNorm(hidden_channels, allow_single_element=True) for _ in widths
        )

    def forward(self, h: Tensor, A: Tensor, exists: Tensor) -> Tensor:
        layers = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            made = conv(h, A)
            # Padding must not enter the statistics of the norm.
            h = torch.zeros_like(made).masked_scatter(
                exists.unsqueeze(-1), norm(made[exists]).relu()
            )
            layers.append(h)
        return torch.cat(layers, dim=-1)


class _Assignment(nn.Module):
    """A GNN and a linear map to the scores of the clusters."""

    def __init__(self, gnn: nn.Module, scores: nn.Module) -> None:
        super().__init__()
        self.gnn, self.scores = gnn, scores

    def forward(self, h: Tensor, A: Tensor, exists: Tensor) -> Tensor:
        out: Tensor = self.scores(self.gnn(h, A, exists))
        return out
