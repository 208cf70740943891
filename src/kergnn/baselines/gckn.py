"""``gckn``: graph convolutional kernel network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import normalize
from torch_geometric.nn import BatchNorm, global_add_pool

from kergnn._checks import check_integer
from kergnn.batches import offsets, ranges


class GCKN(nn.Module):
    r"""Chen, Jacob and Mairal, "Convolutional Kernel Networks for Graph-Structured Data", ICML
    2020.

    With :math:`P_k(u)` the paths of k nodes that start at u, f(p) the features along a path and
    D anchors :math:`Z` (each as long as the features of a path):

    .. math::
        \kappa(p, p') = \exp\Big(-\frac{\|f(p) - f(p')\|^2}{2 k \sigma^2}\Big), \qquad
        \phi(u) = \sum_{p \in P_k(u)} \kappa(Z, Z)^{-1/2} \kappa(Z, p), \qquad
        \Phi(G) = \sum_{u \in G} \phi(u)

    so that :math:`\langle \Phi(G), \Phi(G') \rangle` approximates the path kernel
    :math:`\sum_{p \in G} \sum_{p' \in G'} \kappa(p, p')` from below (Nystroem), exactly where all
    paths are anchors. Further layers do the same with :math:`\phi(u) / \|\phi(u)\|` as features.

    Supervised, the anchors are trained like other weights, best from the start that
    :meth:`fit_anchors` gives. Unsupervised, those anchors stay, and a kernel machine is trained on
    the Gram matrix of :mod:`kergnn.baselines.gckn_unsupervised`. Paths of one size are used, as in
    the paper's formula; the authors' code can also add up several sizes.

    Args:
        in_channels: number of node features.
        hidden_channels: number of anchors D of a layer.
        out_channels: number of classes.
        num_layers: number of layers.
        dropout: probability of dropping a feature of :math:`\Phi(G)`.
        path_size: number of nodes k of a path.
        sigma: width of the Gaussian kernel.
        walks: whether a path may return to a node it has left.
        jitter: added to the eigenvalues of :math:`\kappa(Z, Z)`.

    Shapes:
        - **input:** features (N, in_channels), edge index (2, E), graph of every node (N,)
        - **output:** (num_graphs, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        path_size: int = 3,
        sigma: float = 0.5,
        walks: bool = False,
        jitter: float = 1e-4,
    ) -> None:
        super().__init__()
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        self.path_size = check_integer("path_size", path_size, minimum=1)
        self.sigma, self.walks, self.jitter = sigma, walks, jitter
        self.anchors = nn.ParameterList(
            torch.randn(hidden_channels, path_size, width) / width**0.5
            for width in [in_channels] + [hidden_channels] * (num_layers - 1)
        )
        self.norm = BatchNorm(hidden_channels, allow_single_element=True)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(hidden_channels, out_channels))

    def node_features(self, x: Tensor, paths: Tensor) -> Tensor:
        r"""Return :math:`\phi(u)` of the last layer: (N, D)."""
        for layer, anchors in enumerate(self.anchors):
            x = self._layer(x if layer == 0 else normalize(x), paths, anchors)
        return x

    def _layer(self, x: Tensor, paths: Tensor, anchors: Tensor) -> Tensor:
        scale = 2 * self.path_size * self.sigma**2
        distance = x.new_zeros(len(paths), len(anchors))
        for i in range(self.path_size):
            distance = distance + _squared_distance(x, anchors[:, i]).index_select(0, paths[:, i])
        similarity = (-distance / scale).exp()
        total = x.new_zeros(len(x), len(anchors)).index_add(0, paths[:, 0], similarity)
        flat = anchors.flatten(1)
        K = (-_squared_distance(flat, flat) / scale).exp()
        root: Tensor = _InverseRoot.apply(K, self.jitter)  # type: ignore[no-untyped-call]
        return total @ root

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor,
        num_graphs: int,
        paths: Tensor | None = None,
    ) -> Tensor:
        """Return the logits; ``paths`` spares the call of :func:`find_paths`."""
        if paths is None:
            paths = find_paths(edge_index, len(x), self.path_size, self.walks)
        total = global_add_pool(self.node_features(x, paths), batch, num_graphs)
        out: Tensor = self.head(self.norm(total))
        return out

    def start_from(self, x: Tensor, edge_index: Tensor) -> None:
        """Begin with anchors among the paths of the training graphs."""
        self.fit_anchors(x, find_paths(edge_index, len(x), self.path_size, self.walks))

    @torch.no_grad()
    def fit_anchors(self, x: Tensor, paths: Tensor, seed: int = 0, max_paths: int = 20000) -> None:
        """Move the anchors to the centres that k-means finds among at most ``max_paths`` paths.

        Where there are no more different paths than anchors, these become anchors themselves.
        """
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(paths), generator=generator)[:max_paths]
        sample = paths[order.to(paths.device)]
        for layer, anchors in enumerate(self.anchors):
            features = x if layer == 0 else normalize(x)
            points = torch.from_numpy(np.unique(features[sample].flatten(1).cpu().numpy(), axis=0))
            if len(points) > len(anchors):
                clusters = KMeans(len(anchors), n_init=1, random_state=seed).fit(points.numpy())
                points = torch.from_numpy(clusters.cluster_centers_).to(x.dtype)
            anchors[: len(points)] = points.view(-1, *anchors.shape[1:]).to(anchors)
            x = self._layer(features, paths, anchors)


class _InverseRoot(torch.autograd.Function):
    r"""The matrix :math:`f(K)` with :math:`f(\lambda) = (\lambda + \epsilon)^{-1/2}`.

    Its derivative is that of f in divided differences (Daleckii and Krein), which unlike the
    derivative of eigenvectors exists for equal eigenvalues, too.
    """

    @staticmethod
    def forward(ctx: Any, K: Tensor, jitter: float) -> Tensor:
        values, vectors = torch.linalg.eigh(K)
        root = (values.clamp(min=0) + jitter).sqrt()
        ctx.save_for_backward(root, vectors)
        inverse: Tensor = (vectors / root) @ vectors.T
        return inverse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        root, vectors = ctx.saved_tensors
        difference = -1 / (torch.outer(root, root) * (root.unsqueeze(0) + root.unsqueeze(1)))
        inner = vectors.T @ (gradient + gradient.T) @ vectors / 2
        return vectors @ (difference * inner) @ vectors.T, None


def _squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """(n, d), (m, d) -> (n, m)."""
    squares = a.square().sum(1, keepdim=True) + b.square().sum(1)
    return (squares - 2 * a @ b.T).clamp(min=0)


def find_paths(edge_index: Tensor, num_nodes: int, path_size: int, walks: bool = False) -> Tensor:
    """Return all paths of ``path_size`` nodes, ordered by their first node: (Q, path_size).

    Args:
        edge_index: (2, E) sorted, both directions.
        num_nodes: number of nodes.
        path_size: number of nodes of a path.
        walks: whether nodes may repeat.
    """
    ptr = offsets(torch.bincount(edge_index[0], minlength=num_nodes))
    paths = torch.arange(num_nodes, device=edge_index.device).unsqueeze(1)
    for _ in range(path_size - 1):
        last = paths[:, -1]
        count = ptr[last + 1] - ptr[last]
        following = edge_index[1][ranges(ptr[last], count)].unsqueeze(1)
        paths = paths.repeat_interleave(count, 0)
        if not walks:
            fresh = (paths != following).all(1)
            paths, following = paths[fresh], following[fresh]
        paths = torch.cat([paths, following], dim=1)
    return paths
