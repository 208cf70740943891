"""How a kernel is evaluated: in plain torch on any device, or fused on the CPU.

Both engines return the same values and gradients. ``torch`` is the definition, in
:mod:`kergnn.kernels`; ``numba`` is compiled code with derivatives written by hand for the kernels
``rw``, ``rw-step``, ``drw`` and ``gcn``, in :mod:`kergnn.engine.fused`. It is compiled when it is
first used, and kept on disk.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from kergnn._checks import check_choice
from kergnn._compile import numba_is_missing
from kergnn.egobuilder import not_traced
from kergnn.egographs import EgoGraphs
from kergnn.engine import threads  # noqa: F401  it must know of forks before they happen
from kergnn.engine.normalize import NORMALIZATIONS, normalize_values
from kergnn.kernels import get_kernel, ragged

__all__ = ["ENGINES", "NORMALIZATIONS", "combine", "evaluate", "normalized_sum"]

ENGINES = ("auto", "torch", "numba")

_FUSED_KERNELS = ("rw", "rw-step", "drw", "gcn")
_FUSED_TYPES = (torch.float32, torch.float64)
_warned: set[str] = set()


@not_traced
def evaluate(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    num_steps: int,
    engine: str = "auto",
    **parameters: Tensor,
) -> Tensor:
    """Return every K_p of every ego-graph with every filter.

    Args:
        kernel: name of a registered kernel.
        x: (N, d) node features.
        ego: the ego-graphs.
        adjacency: (D, m, m) symmetric adjacency of the filters.
        attributes: (D, m, d) attributes of the filters.
        num_steps: the longest walk P.
        engine: ``"numba"``, ``"torch"``, or ``"auto"`` for Numba where the kernel has a fused form
            and the tensors are on the CPU in single or double precision, else torch. The
            environment variable ``KERGNN_ENGINE``, if set, replaces ``"auto"``. Where Numba cannot
            be used although it was asked for, a warning says why, once, and torch is used.
        **parameters: further tensors of the kernel, such as ``hop_weight``.

    Returns:
        (P + 1, N, D)
    """
    arguments = (x, ego, adjacency, attributes, num_steps)
    fused = _fused(kernel, x, engine)
    if fused is not None:
        result: Tensor = fused.evaluate(kernel, *arguments, **parameters)
        return result
    return get_kernel(kernel).function(*arguments, **parameters)


@not_traced
def combine(
    kernel: str,
    x: Tensor,
    ego: EgoGraphs,
    adjacency: Tensor,
    attributes: Tensor,
    step_weight: Tensor,
    normalize: str | None = None,
    engine: str = "auto",
    **parameters: Tensor,
) -> Tensor:
    r"""Return the weighted sum over steps of the normalised K_p of a kernel with walks.

    .. math:: k_i(v) = \sum_{p=0}^P \lambda_p\, f(K_p(G_v, H_i))

    ``rw`` with at most two steps is fused up to here: its K_p are not stored for autograd.

    Args:
        kernel, x, ego, adjacency, attributes, engine, **parameters: see :func:`evaluate`.
        step_weight: (P + 1,) :math:`\lambda`.
        normalize: f, see :func:`kergnn.engine.normalize.normalize_values`.

    Returns:
        (N, D)
    """
    num_steps = len(step_weight) - 1
    fused = _fused(kernel, x, engine)
    if fused is not None and fused.is_short(kernel, num_steps):
        result: Tensor = fused.combine(x, ego, adjacency, attributes, step_weight, normalize)
        return result
    K = evaluate(kernel, x, ego, adjacency, attributes, num_steps, engine, **parameters)
    K = normalize_values(K, ego.size, attributes.size(1), normalize)
    return torch.einsum("p,pni->ni", step_weight.to(K.dtype), K)


@not_traced
def normalized_sum(h: Tensor, ego: EgoGraphs, engine: str = "auto") -> Tensor:
    r"""Return :math:`\sum_{a \in G_v} h_a / \sqrt{|G_v|\,|G_a|}` for every node.

    Args:
        h: (N, D) values of the nodes.
        ego: the ego-graphs.
        engine: see :func:`evaluate`.

    Returns:
        (N, D)
    """
    fused = _fused("gcn", h, engine)
    result: Tensor = (ragged if fused is None else fused).normalized_sum(h, ego)
    return result


def _fused(kernel: str, x: Tensor, engine: str) -> Any:
    """Return the fused engine if it is to be used for tensors like x, else ``None``."""
    check_choice("engine", engine, ENGINES)
    if engine == "auto":
        engine = os.environ.get("KERGNN_ENGINE") or "auto"
        check_choice("KERGNN_ENGINE", engine, ENGINES)
    if engine == "torch":
        return None
    if kernel not in _FUSED_KERNELS:
        reason = f"kernel {kernel!r} has no fused form"
    elif x.device.type != "cpu":
        reason = f"the tensors are on {x.device.type}, not on the CPU"
    elif x.dtype not in _FUSED_TYPES:
        reason = f"the tensors are {x.dtype}, not float32 or float64"
    elif torch.is_autocast_enabled("cpu"):
        reason = "the fused form has no mixed precision"
    elif numba_is_missing():
        return None  # even "auto" has spoken up: all is slow, and Numba can be installed
    else:
        return import_module("kergnn.engine.fused")
    if engine != "auto" and reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"engine 'torch' is used: {reason}", stacklevel=3)
    return None
