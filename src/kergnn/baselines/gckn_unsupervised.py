"""``gckn-unsupervised``: the features of GCKN with anchors from k-means, for a kernel machine."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.nn import global_add_pool

from kergnn.baselines.gckn import GCKN, find_paths
from kergnn.baselines.simple_graphs import Progress
from kergnn.data import GraphSet


@torch.no_grad()
def gram(
    graphs: GraphSet,
    x: Tensor,
    hidden_channels: int = 128,
    num_layers: int = 1,
    path_size: int = 3,
    sigma: float = 0.5,
    walks: bool = False,
    normalize: bool = True,
    seed: int = 0,
    train: Tensor | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    r"""Return :math:`\langle \Phi(G), \Phi(G') \rangle` of :class:`kergnn.baselines.gckn.GCKN`.

    The anchors are found among the paths of the graphs ``train``, without their classes.

    Args:
        graphs: the graphs.
        x: (N, d) node features.
        hidden_channels: number of anchors of a layer.
        num_layers: number of layers.
        path_size: number of nodes of a path.
        sigma: width of the Gaussian kernel.
        walks: whether a path may return to a node it has left.
        normalize: whether K is divided by the mean of K(G, G). Each K(G, G) by itself is not scaled
            to one, since the sum over nodes holds the size of a graph.
        seed: seed of the anchors.
        train: positions of the graphs that anchors and scale are taken from; by default all.
        progress: called once, when all is done.

    Returns:
        (G, G)
    """
    x = x.double()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = GCKN(x.size(1), hidden_channels, 1, num_layers, 0.0, path_size, sigma, walks).double()
    paths = find_paths(graphs.simple_edges, len(x), path_size, walks)
    train = torch.arange(graphs.num_graphs) if train is None else train
    known = torch.isin(graphs.graph_of[paths[:, 0]], train)
    net.fit_anchors(x, paths[known], seed)
    features = global_add_pool(net.node_features(x, paths), graphs.graph_of, graphs.num_graphs)
    K: NDArray[np.float64] = (features @ features.T).numpy()
    K = (K + K.T) / 2  # the last bit of a product may depend on the order
    if progress is not None:
        progress(graphs.num_graphs, graphs.num_graphs)
    return K / max(float(np.diagonal(K)[train.numpy()].mean()), 1e-12) if normalize else K
