"""Mini-batches of the nodes of one large graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from kergnn._checks import check_edge_index, check_integer


class SeedLoader(DataLoader[Data]):
    """Cut a graph into mini-batches: some seed nodes, with all that their outputs depend on.

    A batch is the subgraph induced by the nodes within ``num_hops`` hops of its seeds. So the
    ego-graphs that matter are complete, and the seeds get the outputs that the whole graph gives::

        loader = SeedLoader(data, num_hops=net.reach, batch_size=256, shuffle=True)
        for batch in loader:
            out = net(batch.x, batch.edge_index)[batch.seeds]
            loss = cross_entropy(out, batch.y[batch.seeds])

    It does what PyG's ``NeighborLoader(num_neighbors=[-1] * num_hops, subgraph_type="induced")``
    does, without an extension of PyG; but nodes keep their order, on which the choice of
    ``max_nodes`` depends.

    Args:
        data: a graph with ``edge_index``; what has a row for every node is cut with it.
        num_hops: how far the outputs look: :attr:`kergnn.KerGNN.reach`.
        input_nodes: the seeds, as positions or as a mask; ``None`` for all nodes.
        **options: passed on to ``torch.utils.data.DataLoader``, such as ``batch_size``.

    Yields:
        ``Data`` with ``n_id`` (n,), the nodes of the batch, ascending, and ``seeds``, the positions
        of the seeds among them.
    """

    def __init__(
        self, data: Data, num_hops: int, input_nodes: Tensor | None = None, **options: Any
    ) -> None:
        self.data, self.num_hops = data, check_integer("num_hops", num_hops, minimum=0)
        num_nodes = data.num_nodes
        check_edge_index(data.edge_index, num_nodes)
        nodes = torch.arange(num_nodes)
        if input_nodes is not None:
            nodes = nodes[input_nodes.cpu()]
        row, col = data.edge_index.cpu().numpy()
        both = np.concatenate([row, col]), np.concatenate([col, row])
        ones = np.ones(len(both[0]), dtype=np.int8)
        self._adjacency = sp.coo_array((ones, both), shape=(num_nodes, num_nodes)).tocsr()
        seeds: Any = nodes.tolist()
        super().__init__(seeds, collate_fn=self._cut, **options)

    def _cut(self, seeds: list[int]) -> Data:
        nodes: NDArray[Any] = np.unique(seeds)
        for _ in range(self.num_hops):
            nodes = np.union1d(nodes, self._adjacency[nodes].indices)
        edges = self._adjacency[nodes][:, nodes].tocoo()
        chosen = torch.from_numpy(nodes.astype(np.int64))
        batch = Data(num_nodes=len(nodes), n_id=chosen)
        for key, value in self.data:
            of_nodes = isinstance(value, Tensor) and self.data.is_node_attr(key)
            if key not in ("edge_index", "num_nodes") and not self.data.is_edge_attr(key):
                batch[key] = value[chosen.to(value.device)] if of_nodes else value
        device = self.data.edge_index.device
        index = np.stack([edges.row, edges.col]).astype(np.int64)
        batch.edge_index = torch.from_numpy(index).to(device)
        batch.seeds = torch.from_numpy(np.searchsorted(nodes, seeds)).to(device)
        return batch
