"""The competitors by name. A new one is one file and one entry here; nothing is imported early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["network", "kernel"]


@dataclass(frozen=True)
class Baseline:
    """A competitor, and where its code is.

    Args:
        name: the name users write, as in ``--model gin``.
        path: module within this package and name in it, as in ``"gin.GIN"``.
        task: ``"graph"`` or ``"node"``.
        kind: ``"network"`` for a module that is trained, ``"kernel"`` for a function that returns
            a Gram matrix, for :class:`kergnn.baselines.machine.KernelMachine`.
        paper: authors and place.
        summary: what it does, in one line.
        edges: whether it takes features of the edges.
        counts: whether it is a kernel that counts equal labels, whatever they are.
        degrees: the recipe for sets without labels and attributes.
    """

    name: str
    path: str
    task: Literal["graph", "node"]
    kind: Kind
    paper: str
    summary: str
    edges: bool = False
    counts: bool = False
    degrees: str = "degree"

    def load(self) -> Callable[..., Any]:
        """Import and return the class of the network or the function of the kernel."""
        module, _, name = self.path.partition(".")
        found: Callable[..., Any] = getattr(import_module(f"kergnn.baselines.{module}"), name)
        return found


_ALL = [
    Baseline(
        "structure-free",
        "structure_free.StructureFree",
        "graph",
        "network",
        "Errica et al., ICLR 2020",
        "an MLP on the sum of the node features, without the edges",
    ),
    Baseline(
        "gin",
        "gin.GIN",
        "graph",
        "network",
        "Xu et al., ICLR 2019",
        "sums over neighbours and an MLP, all layers read out",
    ),
    Baseline(
        "graphsage",
        "graphsage.GraphSAGE",
        "graph",
        "network",
        "Hamilton et al., NeurIPS 2017",
        "means or maxima over neighbours, maximum readout",
    ),
    Baseline(
        "dgcnn",
        "dgcnn.DGCNN",
        "graph",
        "network",
        "Zhang et al., AAAI 2018",
        "nodes sorted by their features, then a 1-D convolution",
    ),
    Baseline(
        "diffpool",
        "diffpool.DiffPool",
        "graph",
        "network",
        "Ying et al., NeurIPS 2018",
        "a hierarchy of learned soft clusterings",
    ),
    Baseline(
        "ecc",
        "ecc.ECC",
        "graph",
        "network",
        "Simonovsky and Komodakis, CVPR 2017",
        "convolution whose weights are a function of the edge features",
        edges=True,
    ),
    Baseline(
        "rwgnn",
        "rwgnn.RWGNN",
        "graph",
        "network",
        "Nikolentzos and Vazirgiannis, NeurIPS 2020",
        "random walks between trainable hidden graphs and the whole graph",
    ),
    Baseline(
        "gckn",
        "gckn.GCKN",
        "graph",
        "network",
        "Chen et al., ICML 2020",
        "a path kernel by Nystroem features with trained anchors",
    ),
    Baseline(
        "123gnn",
        "gnn123.GNN123",
        "graph",
        "network",
        "Morris et al., AAAI 2019",
        "messages between nodes, between pairs and between triples",
    ),
    Baseline(
        "ppgn",
        "ppgn.PPGN",
        "graph",
        "network",
        "Maron et al., NeurIPS 2019",
        "matrix products of channels over pairs of nodes",
    ),
    Baseline(
        "sp",
        "sp.gram",
        "graph",
        "kernel",
        "Borgwardt and Kriegel, ICDM 2005",
        "counts pairs of nodes at the same distance",
        counts=True,
    ),
    Baseline(
        "pk",
        "pk.gram",
        "graph",
        "kernel",
        "Neumann et al., Machine Learning 2016",
        "counts nodes around which labels spread alike",
        counts=True,
    ),
    Baseline(
        "wl",
        "wl.gram",
        "graph",
        "kernel",
        "Shervashidze et al., JMLR 2011",
        "counts nodes with the same Weisfeiler-Lehman colour",
        counts=True,
    ),
    Baseline(
        "gntk",
        "gntk.gram",
        "graph",
        "kernel",
        "Du et al., NeurIPS 2019",
        "the kernel of an infinitely wide graph network",
        degrees="onehot-degree",  # the angle between two degrees is zero
    ),
    Baseline(
        "gckn-unsupervised",
        "gckn_unsupervised.gram",
        "graph",
        "kernel",
        "Chen et al., ICML 2020",
        "a path kernel by Nystroem features with anchors from k-means",
    ),
    Baseline(
        "gcn",
        "gcn.GCN",
        "node",
        "network",
        "Kipf and Welling, ICLR 2017",
        "normalised sums over neighbours",
    ),
    Baseline(
        "gat",
        "gat.GAT",
        "node",
        "network",
        "Velickovic et al., ICLR 2018",
        "sums over neighbours weighted by attention",
    ),
    Baseline(
        "appnp",
        "appnp.APPNP",
        "node",
        "network",
        "Gasteiger et al., ICLR 2019",
        "an MLP, then personalised PageRank",
    ),
    Baseline(
        "jknet",
        "jknet.JKNet",
        "node",
        "network",
        "Xu et al., ICML 2018",
        "a GCN whose output sees all layers",
    ),
    Baseline(
        "gcnii",
        "gcnii.GCNII",
        "node",
        "network",
        "Chen et al., ICML 2020",
        "a deep GCN with initial residual and identity mapping",
    ),
    Baseline(
        "geomgcn",
        "geomgcn.GeomGCN",
        "node",
        "network",
        "Pei et al., ICLR 2020",
        "neighbours in the graph and in an embedding, by direction",
    ),
]

_BASELINES = {baseline.name: baseline for baseline in _ALL}


def get_baseline(name: str) -> Baseline:
    """Return the competitor called ``name``."""
    if name not in _BASELINES:
        allowed = ", ".join(repr(n) for n in _BASELINES)
        raise ValueError(f"model is {name!r}: it must be one of {allowed}")
    return _BASELINES[name]


def baseline_names(task: str | None = None) -> list[str]:
    """Return the names of all competitors, or of those for ``task``."""
    return [b.name for b in _ALL if task in (None, b.task)]
