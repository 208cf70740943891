"""Graph filters: small trainable graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kergnn._checks import check_choice, check_integer
from kergnn.egographs import EgoGraphs
from kergnn.engine import ENGINES, combine, evaluate
from kergnn.kernels import get_kernel

# The weight of an edge that is there: two of them at a node sum to one.
HARD_WEIGHT = 0.5


class GraphFilters(nn.Module):
    r"""D trainable graphs :math:`H_i`, compared with ego-graphs by one kernel (Definition 3).

    Each filter has m nodes, attributes :math:`W_i` (m, d) and a symmetric, non-negative adjacency
    :math:`B_i` with zero diagonal: the ReLU of m (m - 1) / 2 free numbers. These start uniform
    between 0 and :math:`2 / (m - 1)`, so that no edge is dead and a row of :math:`B_i` sums to
    about one; attributes start normal with variance 1 / d, so that similarities of standardised
    features are of order one.

    Args:
        in_channels: number of features d.
        num_filters: number of filters D.
        filter_size: number of filter nodes m.
        kernel: name of the kernel.
        num_hops: largest hop distance in the ego-graphs, for kernels with weights by hop.
        engine: how the kernel is evaluated: ``"auto"``, ``"torch"`` or ``"numba"``, see
            :func:`kergnn.engine.evaluate`.
        hard_edges: whether an edge is either there, with weight 1/2, or not: where its free number
            is positive. The derivative is that of the ReLU (straight-through), so that training can
            take an edge away, but not bring it back.
    """

    def __init__(
        self,
        in_channels: int,
        num_filters: int,
        filter_size: int,
        kernel: str = "rw",
        num_hops: int = 1,
        engine: str = "auto",
        hard_edges: bool = False,
    ) -> None:
        super().__init__()
        self.kernel = get_kernel(kernel)
        size = check_integer("filter_size", filter_size, minimum=1)
        if self.kernel.filter_size not in (None, size):
            raise ValueError(
                f"filter_size is {size}: kernel {kernel!r} is defined for "
                f"filter_size={self.kernel.filter_size} only"
            )
        self.in_channels = check_integer("in_channels", in_channels, minimum=1)
        self.num_filters = check_integer("num_filters", num_filters, minimum=1)
        self.filter_size = size
        num_hops = check_integer("num_hops", num_hops, minimum=0)
        check_choice("engine", engine, ENGINES)
        self.engine, self.hard_edges = engine, hard_edges

        self.edge_weight = nn.Parameter(torch.empty(num_filters, size * (size - 1) // 2))
        self.attributes = nn.Parameter(torch.empty(num_filters, size, in_channels))
        for name, shape in self.kernel.parameters.items():
            value = nn.Parameter(torch.empty(num_filters, *shape(size, num_hops)))
            self.register_parameter(name, value)
        self.register_buffer("_places", _places(size), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new filters."""
        nn.init.uniform_(self.edge_weight, 0, 2 / max(self.filter_size - 1, 1))
        nn.init.normal_(self.attributes, std=self.in_channels**-0.5)
        for name in self.kernel.parameters:
            nn.init.ones_(self.get_parameter(name))

    def start_from(self, adjacency: Tensor, attributes: Tensor | None = None) -> None:
        """Give the filters shapes in turn; a free number of -1 keeps an edge away for good.

        Args:
            adjacency: (k, m, m) of zeros and ones.
            attributes: (k, m, d) the attributes to start from; otherwise they stay as they are,
                but for those of nodes without edges, which become zero.
        """
        if not len(adjacency):
            return
        turn = torch.arange(self.num_filters) % len(adjacency)
        row, col = torch.triu_indices(self.filter_size, self.filter_size, 1)
        present = adjacency[turn][:, row, col].to(self.edge_weight) > 0
        with torch.no_grad():
            self.edge_weight.copy_(torch.where(present, HARD_WEIGHT, -1.0))
            if attributes is None:
                joined = adjacency[turn].to(self.attributes).amax(2, keepdim=True)
                self.attributes.mul_(joined)
            else:
                self.attributes.copy_(attributes[turn])

    def adjacency(self) -> Tensor:
        """Return (D, m, m): symmetric, non-negative, zero diagonal."""
        weight = self.edge_weight.relu()
        if self.hard_edges:
            weight = HARD_WEIGHT * (weight > 0) + (weight - weight.detach())
        both = weight @ self.get_buffer("_places")
        return both.view(self.num_filters, self.filter_size, self.filter_size)

    def forward(self, x: Tensor, ego: EgoGraphs, num_steps: int) -> Tensor:
        """Return every K_p of every ego-graph with every filter: (P + 1, N, D)."""
        filters = (self.adjacency(), self.attributes)
        return evaluate(self.kernel.name, x, ego, *filters, num_steps, self.engine, **self._extra())

    def combined(
        self, x: Tensor, ego: EgoGraphs, step_weight: Tensor, normalize: str | None
    ) -> Tensor:
        """Return the weighted sum over steps of the normalised K_p: (N, D)."""
        return combine(
            self.kernel.name,
            x,
            ego,
            self.adjacency(),
            self.attributes,
            step_weight,
            normalize=normalize,
            engine=self.engine,
            **self._extra(),
        )

    def _extra(self) -> dict[str, Tensor]:
        return {name: self.get_parameter(name) for name in self.kernel.parameters}

    def extra_repr(self) -> str:
        """Show the sizes in ``repr``."""
        return (
            f"{self.in_channels}, {self.num_filters}, filter_size={self.filter_size}, "
            f"kernel={self.kernel.name!r}"
        )


def _places(size: int) -> Tensor:
    """Return (m (m - 1) / 2, m * m): where in an adjacency every edge stands, twice."""
    row, col = torch.triu_indices(size, size, 1)
    edges = torch.arange(len(row))
    places = torch.zeros(len(row), size, size)
    places[edges, row, col] = places[edges, col, row] = 1
    return places.flatten(1)
