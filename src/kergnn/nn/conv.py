"""The KerGNN layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear as linear_map
from torch.nn.functional import pad

from kergnn._checks import check_choice, check_features, check_integer
from kergnn.egographs import EgoGraphs
from kergnn.engine import NORMALIZATIONS
from kergnn.kernels import get_kernel
from kergnn.nn.filters import GraphFilters
from kergnn.nn.shapes import frequent_shapes

UPDATES = (None, "linear", "mlp")


class KerGNNConv(nn.Module):
    r"""The graph convolution of `"KerGNNs: Interpretable Graph Neural Networks with Graph Kernels"
    <https://arxiv.org/abs/2201.00491>`_: every node's ego-graph is compared with every filter.

    .. math::
        k_i(v) = \sum_{p=0}^P \lambda_p\, K_p(G_v, H_i), \qquad \phi_i(v) = u(x_v, k(v))_i

    Args:
        in_channels: number of input features d.
        out_channels: number of filters D, and of output features.
        filter_size: number of nodes m of a filter. A kernel that is defined for one size only
            (``"gcn"``: one node) uses that size.
        num_steps: longest walk P; 0 uses no edge at all.
        kernel: ``"rw"``, ``"rw-step"``, ``"drw"``, ``"gcn"`` or another registered kernel; or a
            mapping from kernels to numbers of filters that add up to ``out_channels``, such as
            ``{"rw": 16, "drw": 16}``.
        normalize: kernel values are products of features summed over pairs of nodes and grow with
            the neighbourhood. With :math:`q_p = K_p / (|G_v|\, m)`, the mean over node pairs, and
            :math:`r_p = \mathrm{sign}(q_p) (\sqrt{|q_p| + 0.01} - 0.1)`, a square root with finite
            slope at zero, :math:`K_p` is replaced by

            - ``None``: :math:`K_p` itself;
            - ``"size"``: :math:`q_p`;
            - ``"root"``: :math:`r_p`, which undoes that ``rw`` is quadratic in the features;
            - ``"log"``: :math:`\mathrm{sign}(r_p) \log_2(1 + |r_p|)`, which in addition grows only
              with the logarithm of the neighbourhood and with the number of steps, at any depth.

            Kernels without walks (``"gcn"``) are normalised by their definition and left alone.
        update: the function u of Definition 4, which sees the node's own features too: ``None``
            for :math:`\phi = k`; ``"linear"`` for :math:`\phi = V [x_v \,\|\, k(v)] + c`;
            ``"mlp"`` for the same with a hidden layer of D units and ReLU.
        step_weights: :math:`\lambda`: ``None`` for ones, P + 1 given numbers, or ``"trainable"``
            (starting at one). Kernels without walks have no :math:`\lambda`.
        num_hops: radius of the ego-graphs.
        max_nodes: largest size of an ego-graph when they are built from an edge index.
        engine: how kernels are evaluated: ``"auto"``, ``"torch"`` or ``"numba"``, see
            :func:`kergnn.engine.evaluate`.
        hard_edges: see :class:`GraphFilters`.

    Shapes:
        - **input:** features (N, d) and either :class:`~kergnn.EgoGraphs` or an edge index (2, E)
        - **output:** (N, D)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        filter_size: int = 6,
        num_steps: int = 2,
        kernel: str | Mapping[str, int] = "rw",
        normalize: str | None = "log",
        update: str | None = None,
        step_weights: str | Sequence[float] | None = None,
        num_hops: int = 1,
        max_nodes: int | None = None,
        engine: str = "auto",
        hard_edges: bool = False,
    ) -> None:
        super().__init__()
        self.in_channels = check_integer("in_channels", in_channels, minimum=1)
        self.out_channels = check_integer("out_channels", out_channels, minimum=1)
        self.filter_size = check_integer("filter_size", filter_size, minimum=1)
        self.num_steps = check_integer("num_steps", num_steps, minimum=0)
        self.num_hops = check_integer("num_hops", num_hops, minimum=0)
        self.max_nodes = (
            None if max_nodes is None else check_integer("max_nodes", max_nodes, minimum=1)
        )
        check_choice("normalize", normalize, NORMALIZATIONS)
        check_choice("update", update, UPDATES)
        self.normalize = normalize
        self.kernels = _kernel_counts(kernel, out_channels)

        self.groups = nn.ModuleList(
            GraphFilters(
                in_channels,
                count,
                get_kernel(name).filter_size or filter_size,
                name,
                num_hops,
                engine,
                hard_edges,
            )
            for name, count in self.kernels.items()
        )
        self.trainable_steps = isinstance(step_weights, str) and step_weights == "trainable"
        initial = _initial_step_weights(step_weights, self.num_steps, self.kernels)
        if self.trainable_steps:
            self.step_weight = nn.Parameter(initial.clone())
        else:
            self.register_buffer("step_weight", initial.clone())
        self.register_buffer("_initial_step_weight", initial, persistent=False)

        self.update: nn.Module | None = None
        if update is not None:
            layers: list[nn.Module] = [nn.Linear(in_channels + out_channels, out_channels)]
            if update == "mlp":
                layers += [nn.ReLU(), nn.Linear(out_channels, out_channels)]
            self.update = nn.Sequential(*layers)

    def reset_parameters(self) -> None:
        """Draw new filters and a new update, and set the step weights back."""
        for group in self._filter_groups():
            group.reset_parameters()
        with torch.no_grad():
            self.step_weight.copy_(self.get_buffer("_initial_step_weight"))
        for module in self.update.children() if self.update is not None else ():
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(self, x: Tensor, ego: EgoGraphs | Tensor) -> Tensor:
        """Return the new features (N, D); ``ego`` is an ``EgoGraphs`` or an edge index (2, E)."""
        ego = checked_ego(x, ego, self.in_channels, self.num_hops, self.max_nodes)
        return self.updated(x, self.kernel_values(x, ego))

    def kernel_values(self, x: Tensor, ego: EgoGraphs) -> Tensor:
        """Return every ego-graph's value k with every filter: (N, D)."""
        parts = [self._kernel_values(group, x, ego) for group in self._filter_groups()]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def updated(self, x: Tensor, values: Tensor) -> Tensor:
        """Return the new features u(x, k) that given kernel values lead to: (N, D)."""
        if self.update is None:
            return values
        first, *rest = self.update.children()
        out = _linear_of_both(first, x, values)
        for module in rest:
            out = module(out)
        return out

    def _kernel_values(self, group: GraphFilters, x: Tensor, ego: EgoGraphs) -> Tensor:
        if group.kernel.walks:
            return group.combined(x, ego, self.step_weight, self.normalize)
        values: Tensor = group(x, ego, self.num_steps)
        return values.squeeze(0)

    def start_from(self, ego: EgoGraphs, x: Tensor | None = None) -> None:
        """Let the filters start as the most frequent shapes of some ego-graphs.

        Args:
            ego: the ego-graphs.
            x: (N, d) features that the attributes start from; otherwise they stay random.
        """
        for group in self._filter_groups():
            shapes, nodes = frequent_shapes(ego, group.filter_size, group.num_filters)
            attributes = None
            if x is not None and len(nodes):
                attributes = x[nodes.clamp(min=0)] * (nodes >= 0).unsqueeze(2)
            group.start_from(shapes, attributes)

    def filters(self) -> tuple[Tensor, Tensor]:
        """Return the adjacency (D, m, m) and the attributes (D, m, d) of every filter.

        Filters smaller than m (those of ``"gcn"`` beside others) are filled up with nodes without
        edges and attributes, which change no kernel value.
        """
        m = max(group.filter_size for group in self._filter_groups())
        adjacency, attributes = [], []
        for group in self._filter_groups():
            gap = m - group.filter_size
            adjacency.append(pad(group.adjacency(), (0, gap, 0, gap)))
            attributes.append(pad(group.attributes, (0, 0, 0, gap)))
        return torch.cat(adjacency).detach(), torch.cat(attributes).detach()

    def _filter_groups(self) -> list[GraphFilters]:
        return [group for group in self.groups if isinstance(group, GraphFilters)]

    def __repr__(self) -> str:
        kernels = list(self.kernels)
        kernel = repr(kernels[0]) if len(kernels) == 1 else str(self.kernels)
        return (
            f"KerGNNConv({self.in_channels}, {self.out_channels}, filter_size={self.filter_size}, "
            f"num_steps={self.num_steps}, kernel={kernel})"
        )


def _linear_of_both(linear: nn.Module, x: Tensor, values: Tensor) -> Tensor:
    r"""Return :math:`V [x \,\|\, k] + c` without writing the concatenation down."""
    weight, bias = linear.get_parameter("weight"), linear.get_parameter("bias")
    of_x, of_values = torch.split(weight, [x.size(1), values.size(1)], dim=1)
    return torch.addmm(linear_map(x, of_x, bias), values, of_values.T)


def checked_ego(
    x: Tensor, ego: EgoGraphs | Tensor, in_channels: int, num_hops: int, max_nodes: int | None
) -> EgoGraphs:
    """Return the ego-graphs, built if an edge index is given, after a look at the features."""
    if not isinstance(x, Tensor):
        raise ValueError(f"x is {type(x).__name__}: it must be a floating-point tensor (N, d)")
    if isinstance(ego, Tensor):
        ego = EgoGraphs.from_edge_index(ego, len(x), num_hops, max_nodes)
    elif not isinstance(ego, EgoGraphs):
        raise ValueError(f"ego is a {type(ego).__name__}: it must be EgoGraphs or an edge index")
    check_features(x, ego.num_nodes, in_channels)
    return ego


def _kernel_counts(kernel: str | Mapping[str, int], out_channels: int) -> dict[str, int]:
    if isinstance(kernel, str):
        get_kernel(kernel)
        return {kernel: out_channels}
    counts = {}
    for name, count in kernel.items():
        get_kernel(name)
        counts[name] = check_integer(f"kernel[{name!r}]", count, minimum=1)
    if sum(counts.values()) != out_channels:
        raise ValueError(
            f"kernel is {counts}: the numbers of filters must add up to out_channels = "
            f"{out_channels}"
        )
    return counts


def _initial_step_weights(
    step_weights: str | Sequence[float] | None, num_steps: int, kernels: Mapping[str, int]
) -> Tensor:
    terms = num_steps + 1 if any(get_kernel(name).walks for name in kernels) else 0
    if step_weights is None:
        return torch.ones(terms)
    if not terms:
        raise ValueError(
            f"step_weights is {step_weights!r}: it must be None, since "
            f"{' and '.join(map(repr, kernels))} has no walks"
        )
    if isinstance(step_weights, str):
        check_choice("step_weights", step_weights, [None, "trainable", f"{terms} numbers"])
        return torch.ones(terms)
    weights = torch.as_tensor(step_weights, dtype=torch.get_default_dtype())
    if weights.shape != (terms,) or not weights.isfinite().all():
        raise ValueError(
            f"step_weights is {step_weights!r}: it must hold num_steps + 1 = {terms} finite numbers"
        )
    return weights
