r"""Normalisation of kernel values and their weighted sum, compiled.

.. math::
    k = \sum_p \lambda_p\, f(K_p), \qquad
    \bar K_p = \lambda_p f'(K_p)\, \bar k, \qquad \bar \lambda_p = \sum f(K_p)\, \bar k

with f one of the normalisations of :mod:`kergnn.engine.normalize`, which are given by number here.
"""

from __future__ import annotations

import math
from typing import Any

from kergnn.engine.functions import copysign, log2, magnitude, sqrt
from kergnn.engine.lanes import bare, constant, inline, load, spread, store, zeros
from kergnn.engine.members import Array

SIZE, ROOT, LOG = 1, 2, 3


@inline  # type: ignore[untyped-decorator]
def _root(q: Any, like: Array) -> Any:
    return sqrt(magnitude(q) + constant(like, 0.01))


@inline  # type: ignore[untyped-decorator]
def value(K: Any, scale: Any, normalization: int, like: Array) -> Any:
    """Return f(K); ``scale`` is one over the number of pairs of nodes."""
    if normalization == SIZE:
        return K * scale
    if normalization == ROOT:
        return copysign(_root(K * scale, like) - constant(like, 0.1), K)
    if normalization == LOG:
        return copysign(log2(_root(K * scale, like) + constant(like, 0.9)), K)
    return K


@inline  # type: ignore[untyped-decorator]
def slope(K: Any, scale: Any, normalization: int, like: Array) -> Any:
    """Return f'(K)."""
    if normalization == SIZE:
        return scale
    if normalization == ROOT:
        return scale * constant(like, 0.5) / _root(K * scale, like)
    if normalization == LOG:
        r = _root(K * scale, like)
        return scale * constant(like, 0.5 / math.log(2)) / (r * (r + constant(like, 0.9)))
    return constant(like, 1.0)


@bare  # type: ignore[untyped-decorator]
def combine(
    K: Array, pairs: int, step_weight: Array, normalization: int, at: int, step: int, out: Array
) -> None:
    """Set vector ``at`` of out to k, from the vectors ``at``, ``at + step``, ... of K."""
    scale, total = constant(K, 1.0 / pairs), zeros(K)
    for p in range(step_weight.size):
        total += spread(step_weight, p) * value(load(K, at + p * step), scale, normalization, K)
    store(out, at, total)


@bare  # type: ignore[untyped-decorator]
def combine_backward(
    K: Array,
    pairs: int,
    step_weight: Array,
    normalization: int,
    at: int,
    step: int,
    grad_out: Array,
    grad_K: Array,
    grad_step_weight: Array,
    first: int,
) -> None:
    """Set the vectors of grad_K, and add to those of grad_step_weight.

    The latter has no vectors where the weights need no gradient.
    """
    scale, g = constant(K, 1.0 / pairs), load(grad_out, at)
    for p in range(step_weight.size):
        k = load(K, at + p * step)
        store(grad_K, p, spread(step_weight, p) * slope(k, scale, normalization, K) * g)
        if grad_step_weight.size:
            total = load(grad_step_weight, first + p) + value(k, scale, normalization, K) * g
            store(grad_step_weight, first + p, total)
