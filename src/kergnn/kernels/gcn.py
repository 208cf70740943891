"""``gcn``: the kernel under which a layer of one-node filters is a graph convolution (GCN)."""

from __future__ import annotations

from torch import Tensor

from kergnn.egographs import EgoGraphs
from kergnn.kernels.ragged import normalized_sum, similarity
from kergnn.kernels.registry import register_kernel


@register_kernel("gcn", filter_size=1, walks=False)
def gcn(x: Tensor, ego: EgoGraphs, adjacency: Tensor, attributes: Tensor, num_steps: int) -> Tensor:
    r"""Sum the similarities of an ego-graph's nodes with a single filter node.

    .. math::
        K(G_v, h_i) = \sum_{a \in G_v} \frac{\langle x_a, w_i \rangle}{\sqrt{|G_v|\,|G_a|}}

    For ego-graphs of one hop without truncation :math:`|G_v| = |N(v)| + 1`, and this is exactly
    ``torch_geometric.nn.GCNConv`` without bias. The paper sums over the same nodes but divides by
    :math:`\sqrt{|N(v)|\,|N(a)|}`, which is undefined for isolated nodes. Like GCNConv this leaves
    the nonlinearity to the model.

    Args:
        x: (N, d) node features.
        ego: the ego-graphs.
        adjacency: (D, 1, 1), not used: one node has no edges.
        attributes: (D, 1, d) :math:`w_i`.
        num_steps: not used: there are no walks.

    Returns:
        (1, N, D): the single term.
    """
    return normalized_sum(similarity(x, attributes).squeeze(-1), ego).unsqueeze(0)
