"""``gntk``: the graph neural tangent kernel."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kergnn._checks import check_choice, check_integer
from kergnn._compile import compiled
from kergnn.baselines.simple_graphs import Progress, cosine
from kergnn.data import GraphSet


def gram(
    graphs: GraphSet,
    x: Tensor,
    num_layers: int = 2,
    mlp_layers: int = 2,
    jumping_knowledge: bool = True,
    scale: str = "degree",
    normalize: bool = True,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    r"""Du et al., "Graph Neural Tangent Kernel: Fusing Graph Neural Networks with Graph Kernels",
    NeurIPS 2019: the kernel of an infinitely wide GNN with sum readout.

    From :math:`\Sigma = \Theta = X X'^T` on, each of the L layers is a sum over neighbours,

    .. math::
        \Sigma_{uu'} \leftarrow c_u c_{u'} \sum_{v \in N(u) \cup u}\,
        \sum_{v' \in N(u') \cup u'} \Sigma_{vv'}, \qquad \Theta \text{ likewise,}

    and R layers of an MLP with ReLU, where :math:`\cos\theta_{uu'} =
    \Sigma_{uu'} / \sqrt{\Sigma_{uu} \Sigma_{u'u'}}`:

    .. math::
        \Sigma_{uu'} \leftarrow \sqrt{\Sigma_{uu} \Sigma_{u'u'}}\,
        \frac{\sin\theta + (\pi - \theta) \cos\theta}{\pi}, \qquad
        \Theta_{uu'} \leftarrow \Theta_{uu'} \frac{\pi - \theta}{\pi} + \Sigma_{uu'} .

    :math:`K(G, G') = \sum_{u, u'} \Theta_{uu'}` after the last layer, or after all, added up. Each
    pair of graphs costs the product of their numbers of nodes times their mean degree.

    Args:
        graphs: the graphs.
        x: (N, d) node features.
        num_layers: number of layers L.
        mlp_layers: number of layers R of an MLP.
        jumping_knowledge: whether the layers, and the input, are added up.
        scale: ``"degree"`` for :math:`c_u = 1 / (|N(u)| + 1)`, ``"uniform"`` for 1.
        normalize: whether K(G, G) is scaled to one.
        progress: called with the pairs of graphs done and those there are.

    Returns:
        (G, G)
    """
    num_layers = check_integer("num_layers", num_layers, minimum=1)
    mlp_layers = check_integer("mlp_layers", mlp_layers, minimum=1)
    check_choice("scale", scale, ["degree", "uniform"])
    row, col = graphs.simple_edges.numpy()
    degree = np.bincount(row, minlength=graphs.num_nodes)
    indptr = np.concatenate([[0], degree.cumsum()])
    factor = 1 / (degree + 1.0) if scale == "degree" else np.ones(graphs.num_nodes)
    G, ptr, features = graphs.num_graphs, graphs.ptr.numpy(), x.double().contiguous().numpy()
    roots, K = np.zeros((num_layers, graphs.num_nodes)), np.zeros((G, G))
    fixed = ptr, features, indptr, col, factor, roots, mlp_layers, jumping_knowledge

    def fill(g: int, stop: int) -> None:
        for h in range(g, stop):
            K[g, h] = K[h, g] = _theta(g, h, *fixed)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        # A graph with itself comes first: that gives the roots which pairs need.
        list(pool.map(lambda g: fill(g, g + 1), range(G)))
        total, done = G * (G + 1) // 2, 0
        for g, _ in enumerate(pool.map(lambda g: fill(g, G), range(G))):
            done += G - g
            if progress is not None:
                progress(done, total)
    return cosine(K) if normalize else K


@compiled
def _theta(
    g: int,
    h: int,
    ptr: NDArray[np.int64],
    features: NDArray[np.float64],
    indptr: NDArray[np.int64],
    col: NDArray[np.int64],
    factor: NDArray[np.float64],
    roots: NDArray[np.float64],
    mlp_layers: int,
    jumping_knowledge: bool,
) -> float:
    r"""Return K(g, h); where g = h, write :math:`\sqrt{\Sigma_{uu}}` of every layer to ``roots``.

    An MLP leaves :math:`\Sigma_{uu}` as it is, so there is one root for each layer and node.
    """
    a, b = ptr[g], ptr[h]
    S = features[a : ptr[g + 1]] @ features[b : ptr[h + 1]].T
    T = S.copy()
    total = T.sum()
    for layer in range(len(roots)):
        S = _aggregate(S, a, b, indptr, col, factor)
        T = _aggregate(T, a, b, indptr, col, factor)
        if g == h:
            for u in range(len(S)):
                roots[layer, a + u] = math.sqrt(max(S[u, u], 0.0))
        for _ in range(mlp_layers):
            for u in range(S.shape[0]):
                for v in range(S.shape[1]):
                    norm = roots[layer, a + u] * roots[layer, b + v]
                    cos = min(max(S[u, v] / norm, -1.0), 1.0) if norm > 0 else 0.0
                    rest = math.pi - math.acos(cos)
                    S[u, v] = norm * (math.sqrt(1 - cos * cos) + rest * cos) / math.pi
                    T[u, v] = T[u, v] * rest / math.pi + S[u, v]
        total = total + T.sum() if jumping_knowledge else T.sum()
    return total  # type: ignore[no-any-return]


@compiled
def _aggregate(
    M: NDArray[np.float64],
    a: int,
    b: int,
    indptr: NDArray[np.int64],
    col: NDArray[np.int64],
    factor: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum over the neighbours, and itself, of the node of a row and of that of a column.

    The nodes of the two graphs are counted from a and from b.
    """
    rows = M.copy()
    for u in range(M.shape[0]):
        for e in range(indptr[a + u], indptr[a + u + 1]):
            rows[u] += M[col[e] - a]
        rows[u] *= factor[a + u]
    out = np.empty_like(M)
    for u in range(M.shape[0]):
        row = rows[u]
        for v in range(M.shape[1]):
            total = row[v]
            for e in range(indptr[b + v], indptr[b + v + 1]):
                total += row[col[e] - b]
            out[u, v] = total * factor[b + v]
    return out
