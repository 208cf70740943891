"""The first map of a network whose nodes have words beside numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from kergnn._checks import check_integer

# Of words' vectors before training. With smaller ones words are soon learned by heart, larger ones
# are hardly trained; chosen by validation parts of NCI1.
_INITIAL_SCALE = 0.3


class WordMap(nn.Module):
    r"""Linear map of a node's numbers, plus a trained vector for each of its words.

    .. math::
        \phi_0(v) = W x_v + b + \sum_r e_r(w_r(v))

    which is the linear map of the numbers and one-hot words, without a column for each word.

    Args:
        in_channels: number of columns, numbers and words.
        out_channels: size of the result.
        vocabulary: for each of the last columns, which are the words, how many there are: 1 to this
            number; 0 is no word.
        dropout: probability of dropping a number or a word in training.

    Shapes:
        - **input:** (N, in_channels)
        - **output:** (N, out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, vocabulary: Sequence[int], dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = [check_integer("vocabulary", size, minimum=0) for size in vocabulary]
        self.num_numbers = in_channels - len(sizes)
        if not sizes or self.num_numbers < 1:
            raise ValueError(
                f"vocabulary has {len(sizes)} entries: it must have one for each column of words, "
                f"at least one and fewer than in_channels = {in_channels}"
            )
        self.linear = nn.Linear(self.num_numbers, out_channels)
        # Row 0 is no word, whatever the column.
        self.vectors = nn.Parameter(torch.empty(1 + sum(sizes), out_channels))
        self.register_buffer("sizes", torch.tensor(sizes), persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.linear.reset_parameters()
        nn.init.normal_(self.vectors, std=_INITIAL_SCALE)
        with torch.no_grad():
            self.vectors[0] = 0

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of nodes (N, out_channels)."""
        return self.joined(self.parts(x))

    def parts(self, x: Tensor) -> Tensor:
        """Return the numbers and the sum of the words' vectors: (N, num_numbers + out_channels)."""
        assert isinstance(self.sizes, Tensor)
        columns = x[:, self.num_numbers :]
        words = columns.long()
        if ((words != columns) | (words < 0) | (words > self.sizes)).any():
            raise ValueError(
                "x has words that are not known: they must be whole numbers from 0 to "
                f"{self.sizes.tolist()}"
            )
        rows = torch.where(words > 0, words + self.sizes.cumsum(0) - self.sizes, 0)
        weight = self.dropout(torch.ones_like(words, dtype=x.dtype))
        vectors = embedding_bag(
            rows, self.vectors, mode="sum", per_sample_weights=weight, padding_idx=0
        )
        return torch.cat([self.dropout(x[:, : self.num_numbers]), vectors], dim=1)

    def joined(self, parts: Tensor) -> Tensor:
        """Return the features of nodes, given their :meth:`parts`."""
        numbers, vectors = parts[:, : self.num_numbers], parts[:, self.num_numbers :]
        out: Tensor = self.linear(numbers)
        return out + vectors


class WithWords(nn.Module):
    """A network of numbers that takes words as well.

    Args:
        words: the first map.
        network: the network, called with the result in the place of the features.
    """

    def __init__(self, words: WordMap, network: nn.Module) -> None:
        super().__init__()
        self.words, self.network = words, network

    def forward(self, x: Tensor, *others: object) -> Tensor:
        """Return what the network makes of the mapped features."""
        out: Tensor = self.network(self.words(x), *others)
        return out

    @property
    def auxiliary_loss(self) -> Tensor | float:
        """What the network adds to the loss."""
        loss: Tensor | float = getattr(self.network, "auxiliary_loss", 0.0)
        return loss

    @property
    def start_from(self) -> Callable[[Tensor, Tensor], None] | None:
        """What the network takes from the training part before the first epoch, if anything."""
        start = getattr(self.network, "start_from", None)
        if start is None:
            return None

        def begin(x: Tensor, edge_index: Tensor) -> None:
            with torch.no_grad():
                start(deepcopy(self.words).eval()(x), edge_index)

        return begin
