"""The KerGNN model: input map, layers, readout, head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from kergnn._checks import check_choice, check_integer
from kergnn.egographs import EgoGraphs
from kergnn.nn.conv import KerGNNConv, checked_ego
from kergnn.nn.filters import GraphFilters
from kergnn.nn.inputs import WordMap
from kergnn.nn.readout import READOUTS, read_out
from kergnn.nn.smoothing import NUM_SMOOTHING_STEPS, smoothed


class KerGNN(nn.Module):
    r"""Kernel graph neural network for graphs or nodes.

    .. math::
        \phi_0 = x \text{ or its linear map}, \qquad
        \phi_l(v) = \mathrm{ReLU}(\mathrm{norm}(\mathrm{conv}_l(\phi_{l-1}, G_v))), \qquad
        \Phi(G) = \mathop{\|}_{l=0}^{L} \sum_{v \in G} \phi_l(v)

    and an MLP on :math:`\Phi(G)`, or on the concatenated :math:`\phi_l(v)` for nodes.

    Args:
        in_channels: number of input features.
        hidden_channels: number of filters of a layer.
        out_channels: number of classes.
        num_layers: number of layers L.
        filter_size: number of nodes of a filter, one number or one for each layer.
        num_steps: longest walk.
        kernel: kernel of the layers, see :class:`KerGNNConv`.
        num_hops: radius of the ego-graphs.
        max_nodes: largest size of an ego-graph when they are built from an edge index.
        input_channels: size of the linear map of the input features, ``None`` for no map.
        normalize: see :class:`KerGNNConv`.
        update: see :class:`KerGNNConv`.
        step_weights: see :class:`KerGNNConv`.
        norm: ``"batch"``, ``"layer"`` or ``None``: normalisation of each layer's output.
        dropout: probability of dropping a feature after each layer and within the head.
        input_dropout: probability of dropping an input feature.
        readout: ``"sum"`` or ``"mean"`` over the nodes of a graph; ``"log"`` for
            :math:`\mathrm{sign}(s) \log(1 + |s|)` of the sums s, so that a graph ten times as
            large is not ten times as far away; or ``"evidence"``: the head sits on every node, its
            mean over the classes is taken off, and a graph's logits are the sums of this evidence
            of its nodes.
        head_channels: hidden size of the MLP, ``None`` for ``hidden_channels``.
        task: ``"graph"`` for one output a graph, ``"node"`` for one a node.
        engine: see :class:`KerGNNConv`.
        filter_init: ``"ego"`` to let the filters start as the most frequent shapes of the
            ego-graphs that :meth:`start_from` gets; ``None`` for random ones.
        hard_edges: see :class:`GraphFilters`.
        edge_penalty: weight of the mean size of the filters' edges in :attr:`auxiliary_loss`,
            which training adds to its loss.
        evidence_penalty: the same for the mean size of the nodes' evidence, so that few nodes have
            any; for the readout ``"evidence"``.
        restart: for nodes, the probability r of returning to the node itself when its logits H are
            smoothed by ten steps of personalised PageRank over the ego-graphs,
            :math:`Z_{k+1}(v) = (1 - r) \sum_{a \in G_v} Z_k(a) / \sqrt{|G_v|\,|G_a|} + r H(v)`;
            ``None`` for no smoothing.
        vocabulary: for nodes that have words beside numbers: of each of the last columns of x how
            many there are, see :class:`WordMap`, which takes the place of the linear map.

    Shapes:
        - **input:** features (N, in_channels); ego-graphs or an edge index (2, E); for graphs the
          graph of every node (N,) and the number of graphs
        - **output:** (num_graphs, out_channels) or (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        filter_size: int | Sequence[int] = 6,
        num_steps: int = 2,
        kernel: str | Mapping[str, int] = "rw",
        num_hops: int = 1,
        max_nodes: int | None = None,
        input_channels: int | None = None,
        normalize: str | None = "log",
        update: str | None = "mlp",
        step_weights: str | Sequence[float] | None = None,
        norm: str | None = "batch",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        readout: str = "sum",
        head_channels: int | None = None,
        task: str = "graph",
        engine: str = "auto",
        filter_init: str | None = None,
        hard_edges: bool = False,
        edge_penalty: float = 0.0,
        evidence_penalty: float = 0.0,
        restart: float | None = None,
        vocabulary: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.in_channels = check_integer("in_channels", in_channels, minimum=1)
        hidden_channels = check_integer("hidden_channels", hidden_channels, minimum=1)
        self.out_channels = check_integer("out_channels", out_channels, minimum=1)
        num_layers = check_integer("num_layers", num_layers, minimum=1)
        several = isinstance(filter_size, Sequence)
        sizes = list(filter_size) if isinstance(filter_size, Sequence) else [filter_size]
        sizes = sizes if several else sizes * num_layers
        if len(sizes) != num_layers:
            raise ValueError(
                f"filter_size is {filter_size!r}: it must be one number or one for each of the "
                f"{num_layers} layers"
            )
        check_choice("norm", norm, ["batch", "layer", None])
        check_choice("readout", readout, READOUTS)
        check_choice("task", task, ["graph", "node"])
        for name, value in (("dropout", dropout), ("input_dropout", input_dropout)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} is {value!r}: it must be at least 0 and below 1")
        check_choice("filter_init", filter_init, [None, "ego"])
        for name, value in (
            ("edge_penalty", edge_penalty),
            ("evidence_penalty", evidence_penalty),
        ):
            if not value >= 0:
                raise ValueError(f"{name} is {value!r}: it must not be negative")
        if evidence_penalty and (readout != "evidence" or task != "graph"):
            raise ValueError(
                f"evidence_penalty is {evidence_penalty!r}: it must be 0, unless readout is "
                "'evidence' and task is 'graph'"
            )
        numeric = isinstance(restart, (int, float)) and not isinstance(restart, bool)
        if restart is not None and not (task == "node" and numeric and 0 < restart <= 1):
            raise ValueError(
                f"restart is {restart!r}: it must be None, or above 0 and at most 1 for task 'node'"
            )
        self.filter_init, self.edge_penalty, self.restart = filter_init, edge_penalty, restart
        self.evidence_penalty, self._evidence_size = evidence_penalty, torch.zeros(())
        self.num_hops, self.max_nodes = num_hops, max_nodes
        self.readout, self.task, self.engine = readout, task, engine

        if input_channels is not None:
            check_integer("input_channels", input_channels, minimum=1)
        elif vocabulary:
            raise ValueError("input_channels is None: with a vocabulary it must be at least 1")
        self.input_map: nn.Module | None = None
        self.input_dropout = nn.Dropout(0.0 if vocabulary else input_dropout)
        if vocabulary:
            assert input_channels is not None
            self.input_map = WordMap(in_channels, input_channels, vocabulary, input_dropout)
        elif input_channels is not None:
            self.input_map = nn.Linear(in_channels, input_channels)
        width = in_channels if input_channels is None else input_channels
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        channels = width
        for size in sizes:
            self.convs.append(
                KerGNNConv(
                    channels,
                    hidden_channels,
                    size,
                    num_steps,
                    kernel,
                    normalize,
                    update,
                    step_weights,
                    num_hops,
                    max_nodes,
                    engine,
                    hard_edges,
                )
            )
            self.norms.append(_norm(norm, hidden_channels))
            channels = hidden_channels
            width += hidden_channels
        self.dropout = nn.Dropout(dropout)
        head_channels = hidden_channels if head_channels is None else head_channels
        check_integer("head_channels", head_channels, minimum=1)
        self.head = nn.Sequential(
            _norm(norm, width),
            nn.Linear(width, head_channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(head_channels, out_channels),
        )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in self.modules():
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]

    @property
    def start_from(self) -> Callable[[Tensor, EgoGraphs], None] | None:
        """What takes the training part before the first epoch: features (N, d) and ego-graphs."""
        return self._start_from if self.filter_init == "ego" else None

    def _start_from(self, x: Tensor, ego: EgoGraphs) -> None:
        with torch.no_grad():
            first = x if self.input_map is None else deepcopy(self.input_map).eval()(x)
        for layer, conv in enumerate(self.convs):
            assert isinstance(conv, KerGNNConv)
            conv.start_from(ego, first if layer == 0 else None)

    @property
    def auxiliary_loss(self) -> Tensor | float:
        """What training adds to the loss: the penalties, the second of the last forward pass."""
        loss: Tensor | float = 0.0
        if self.edge_penalty:
            groups = [m for m in self.modules() if isinstance(m, GraphFilters)]
            weights = torch.cat([group.edge_weight.relu().flatten() for group in groups])
            loss = loss + self.edge_penalty * weights.mean()
        if self.evidence_penalty:
            loss = loss + self.evidence_penalty * self._evidence_size
        return loss

    def __getstate__(self) -> dict[str, Any]:
        """Copy the size of the evidence as a number: what led to it cannot be copied."""
        return {**self.__dict__, "_evidence_size": self._evidence_size.detach()}

    @property
    def num_radii(self) -> int:
        """How many radii of ego-graphs away features can count: layers and steps of smoothing."""
        return len(self.convs) + (0 if self.restart is None else NUM_SMOOTHING_STEPS)

    @property
    def reach(self) -> int:
        """How many hops away a node can matter to an output.

        With ``max_nodes`` that is one hop more: the degrees of the farthest nodes matter. With the
        kernel ``"gcn"`` it is one radius more: so do the sizes of their ego-graphs. With
        ``restart`` every step of the smoothing is one radius.
        """
        by_size = any("gcn" in c.kernels for c in self.convs if isinstance(c, KerGNNConv))
        hops = (self.num_radii + by_size) * self.num_hops
        return hops + (self.max_nodes is not None)

    def node_features(self, x: Tensor, ego: EgoGraphs | Tensor) -> list[Tensor]:
        r"""Return the nodes' features after every layer, :math:`\phi_0` to :math:`\phi_L`."""
        ego = checked_ego(x, ego, self.in_channels, self.num_hops, self.max_nodes)
        x = self.input_dropout(x)
        features = [x if self.input_map is None else self.input_map(x)]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            features.append(self.dropout(norm(conv(features[-1], ego)).relu()))
        return features

    def embed(
        self,
        x: Tensor,
        ego: EgoGraphs | Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        r"""Return :math:`\Phi(G)` of every graph, or the features of every node, all layers in one.

        Arguments are those of :meth:`forward`. The head sees these, but for the readout
        ``"evidence"``, where it sees the nodes one by one.
        """
        features = self.node_features(x, ego)
        if self.task == "graph":
            features = read_out(self.readout, features, batch, num_graphs)
        return torch.cat(features, dim=1)

    def forward(
        self,
        x: Tensor,
        ego: EgoGraphs | Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """Return the logits.

        Args:
            x: (N, in_channels) node features.
            ego: the ego-graphs, or an edge index (2, E) to build them from.
            batch: (N,) graph of every node; without it all nodes are one graph.
            num_graphs: number of graphs; needed with ``batch``, since the last graphs may be empty.
        """
        if isinstance(ego, Tensor):  # built once for the layers and the smoothing
            ego = checked_ego(x, ego, self.in_channels, self.num_hops, self.max_nodes)
        return self.logits(self.node_features(x, ego), ego, batch, num_graphs)

    def logits(
        self,
        features: list[Tensor],
        ego: EgoGraphs,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        r"""Return the logits of given node features :math:`\phi_0` to :math:`\phi_L`."""
        if self.task == "graph" and self.readout != "evidence":
            features = read_out(self.readout, features, batch, num_graphs)
        out: Tensor = self.head(torch.cat(features, dim=1))
        if self.task == "graph" and self.readout == "evidence":
            out = out - out.mean(1, keepdim=True)
            if self.evidence_penalty and self.training:
                self._evidence_size = out.abs().mean()
            (out,) = read_out(self.readout, [out], batch, num_graphs)
        if self.restart is not None:
            out = smoothed(out, ego, self.restart, engine=self.engine)
        return out


def _norm(name: str | None, channels: int) -> nn.Module:
    if name is None:
        return nn.Identity()
    # A batch of one graph, as the last of an epoch may be, has no variance of its own.
    batch_norm: nn.Module = BatchNorm(channels, allow_single_element=True)
    return batch_norm if name == "batch" else nn.LayerNorm(channels)
