"""Random graphs and filters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def random_graph(
    num_nodes: int, probability: float = 0.4, seed: int = 0, num_features: int = 3
) -> tuple[Tensor, Tensor]:
    """Return float64 features (n, d) and the edge index of an Erdos-Renyi graph."""
    generator = torch.Generator().manual_seed(seed)
    keep = torch.rand(num_nodes, num_nodes, generator=generator) < probability
    edge_index = keep.triu(1).nonzero().T
    x = torch.randn(num_nodes, num_features, generator=generator, dtype=torch.float64)
    return x, torch.cat([edge_index, edge_index.flip(0)], dim=1)


def random_filters(
    num_filters: int, filter_size: int, num_features: int = 3, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return float64 adjacency (D, m, m) and attributes (D, m, d); some edges are absent."""
    generator = torch.Generator().manual_seed(seed)
    options: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    upper = torch.rand(num_filters, filter_size, filter_size, **options).triu(1)
    upper = upper * (upper > 0.3)
    attributes = torch.randn(num_filters, filter_size, num_features, **options)
    return upper + upper.transpose(1, 2), attributes
