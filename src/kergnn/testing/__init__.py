"""Brute-force oracles, random inputs and assertions that the tests of any kernel reuse."""

from kergnn.testing.checks import (
    KernelTests,
    assert_permutation_invariant,
)
from kergnn.testing.inputs import (
    random_filters,
    random_graph,
)
from kergnn.testing.oracles import (
    PairOracle,
    brute_force,
    deep_kronecker_kernel,
    dense_smoothing,
    ego_graph,
    enumerated_cliques,
    enumerated_contributions,
    enumerated_returns,
    enumerated_walk_kernel,
    kronecker_kernel,
    unfolded_color,
    walks,
)

__all__ = [
    "KernelTests",
    "PairOracle",
    "assert_permutation_invariant",
    "brute_force",
    "deep_kronecker_kernel",
    "dense_smoothing",
    "ego_graph",
    "enumerated_cliques",
    "enumerated_contributions",
    "enumerated_returns",
    "enumerated_walk_kernel",
    "kronecker_kernel",
    "random_filters",
    "random_graph",
    "unfolded_color",
    "walks",
]
