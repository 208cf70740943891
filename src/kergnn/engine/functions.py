"""Elementary functions of the vectors of :mod:`kergnn.engine.lanes`, number by number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from kergnn.engine.lanes import FLAGS, LANES


def _call(name: str, num_arguments: int) -> Any:
    """Return an intrinsic that applies an LLVM function to every number."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = context.get_value_type(sig.return_type)
        bits = 8 * context.get_abi_sizeof(vector.element)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * num_arguments),
            f"llvm.{name}.v{LANES}f{bits}",
        )
        return builder.call(function, args)

    return generate


@intrinsic  # type: ignore[untyped-decorator]
def sqrt(typingctx: Any, x: Any) -> Any:
    """Return the square roots."""
    return x(x), _call("sqrt", 1)


@intrinsic  # type: ignore[untyped-decorator]
def magnitude(typingctx: Any, x: Any) -> Any:
    """Return the absolute values."""
    return x(x), _call("fabs", 1)


@intrinsic  # type: ignore[untyped-decorator]
def copysign(typingctx: Any, x: Any, y: Any) -> Any:
    """Return the magnitudes of x with the signs of y."""
    return x(x, x), _call("copysign", 2)


@intrinsic  # type: ignore[untyped-decorator]
def log2(typingctx: Any, x: Any) -> Any:
    r"""Return the logarithms of positive normal numbers; infinity and NaN stay what they are.

    .. math::
        x = 2^e y, \quad \tfrac{1}{\sqrt 2} \le y < \sqrt 2, \quad t = \frac{y - 1}{y + 1}, \qquad
        \log_2 x = e + \frac{2}{\ln 2} \sum_k \frac{t^{2k+1}}{2k + 1} .
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = context.get_value_type(sig.return_type)
        double = isinstance(vector.element, ir.DoubleType)
        width, mantissa, num_terms = (64, 52, 11) if double else (32, 23, 6)
        integers = ir.VectorType(ir.IntType(width), LANES)

        def number(value: float) -> Any:
            return ir.Constant(vector, [value] * LANES)

        def integer(value: int) -> Any:
            return ir.Constant(integers, [value] * LANES)

        root = (
            np.float64(0.5**0.5).view(np.int64) if double else np.float32(0.5**0.5).view(np.int32)
        )
        bits = builder.bitcast(args[0], integers)
        exponent = builder.ashr(builder.sub(bits, integer(int(root))), integer(mantissa))
        scaled = builder.sub(bits, builder.shl(exponent, integer(mantissa)))
        y = builder.bitcast(scaled, vector)
        t = builder.fdiv(builder.fsub(y, number(1.0)), builder.fadd(y, number(1.0)))
        square = builder.fmul(t, t)
        total = number(0.0)
        for k in range(num_terms - 1, -1, -1):
            term = number(2 / math.log(2) / (2 * k + 1))
            total = builder.fadd(builder.fmul(total, square, flags=FLAGS), term, flags=FLAGS)
        result = builder.fadd(
            builder.fmul(total, t, flags=FLAGS), builder.sitofp(exponent, vector), flags=FLAGS
        )
        finite = builder.fcmp_ordered("<", args[0], number(math.inf))
        return builder.select(finite, result, args[0])

    return x(x), generate
