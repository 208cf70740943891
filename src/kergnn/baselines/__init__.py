"""The systems KerGNN is compared with, each in one file, under one interface.

A network is built from ``(in_channels, hidden_channels, out_channels, ...)`` and called as
``net(x, edge_index, batch, num_graphs)`` for graphs or ``net(x, edge_index)`` for nodes, where
``edge_index`` is sorted and holds both directions of every edge and no loops. A kernel is a
function ``gram(graphs, x, ...)`` that returns a Gram matrix.
"""

from kergnn.baselines.registry import Baseline, baseline_names, get_baseline

__all__ = ["Baseline", "baseline_names", "get_baseline"]
