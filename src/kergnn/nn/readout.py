"""From the features of nodes to those of their graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from kergnn._checks import check_integer

READOUTS = ("sum", "mean", "log", "evidence")


def read_out(
    readout: str, features: list[Tensor], batch: Tensor | None, num_graphs: int | None
) -> list[Tensor]:
    """Return the readout of the nodes of every graph, layer by layer.

    Args:
        readout: one of :data:`READOUTS`; of evidence it is the sum.
        features: (N, d) of every layer.
        batch: (N,) graph of every node; without it all nodes are one graph.
        num_graphs: number of graphs, needed with ``batch``.
    """
    num_nodes = features[0].size(0)
    if batch is None:
        if num_graphs not in (None, 1):
            raise ValueError(f"num_graphs is {num_graphs}: without batch it must be 1 or None")
        batch, num_graphs = features[0].new_zeros(num_nodes, dtype=torch.long), 1
    if num_graphs is None:
        raise ValueError("num_graphs is missing: it must be given together with batch")
    num_graphs = check_integer("num_graphs", num_graphs, minimum=0)
    if not isinstance(batch, Tensor) or batch.dtype != torch.long:
        raise ValueError("batch must be a tensor of integers (torch.long)")
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch has shape {tuple(batch.shape)}: it must be (N,) = ({num_nodes},)")
    lowest, highest = map(int, batch.aminmax()) if batch.numel() else (0, -1)
    if lowest < 0 or highest >= num_graphs:
        raise ValueError(
            f"batch reaches from {lowest} to {highest}: it must lie in 0 to "
            f"num_graphs - 1 = {num_graphs - 1}"
        )
    totals = [f.new_zeros(num_graphs, f.size(1)).index_add(0, batch, f) for f in features]
    if readout == "log":
        return [total * log_proportion(total) for total in totals]
    if readout == "mean":
        count = torch.bincount(batch, minlength=num_graphs).clamp(min=1).unsqueeze(1)
        return [total / count for total in totals]
    return totals


def log_proportion(total: Tensor) -> Tensor:
    """Return log(1 + |s|) / |s| of every sum s, which at zero is one."""
    size = total.abs()
    tiny = size < torch.finfo(total.dtype).eps
    return torch.where(tiny, 1.0, size.log1p() / size.masked_fill(tiny, 1.0))
