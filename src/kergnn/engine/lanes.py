"""Sixteen numbers at once: the vector type that the fused engine is written in.

A value of this type lives in vector registers (two of AVX for float32, four for float64), so sums
over members and neighbours stay there until they are stored, and the speed does not hang on what
the compiler recognises as a loop to vectorise. ``load`` and ``store`` see a contiguous array as a
list of such vectors: vector i holds the flat elements 16 i to 16 i + 15.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from kergnn._compile import compiled

LANES = 16

# Nothing is reordered and NaN stays NaN; only a * b + c may be rounded once instead of twice.
FLAGS = ("contract",)

jit: Any = partial(compiled, error_model="numpy")
# Without reference counts, which would be kept in the innermost loops; so nothing is allocated.
bare: Any = partial(compiled, error_model="numpy", _nrt=False)
inline: Any = partial(compiled, error_model="numpy", inline="always")


class Lanes(types.Type):
    """The type of a vector of LANES numbers of ``dtype``."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Any) -> None:
        element = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, LANES))


class Rows(types.Type):
    """The type of ``count`` vectors, those of some consecutive filter nodes.

    The count is known when code is compiled, so that all of them stay in registers; code is given
    it as the length of a tuple.
    """

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Rows({dtype}, {count})")


@register_model(Rows)
class _RowsModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, rows: Any) -> None:
        vector = manager.lookup(Lanes(rows.dtype)).get_value_type()
        super().__init__(manager, rows, ir.ArrayType(vector, rows.count))


class _Elementwise(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) != 2 or not all(isinstance(arg, (Lanes, Rows)) for arg in args):
            return None
        if args[0] == args[1] or isinstance(args[0], Lanes):
            return signature(args[1], *args)
        return None


def _define(operation: Any, instruction: str) -> None:
    infer_global(operation)(type(f"_{instruction}", (_Elementwise,), {"key": operation}))

    @lower_builtin(operation, Lanes, Lanes)  # type: ignore[untyped-decorator]
    def _(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=FLAGS)

    @lower_builtin(operation, Rows, Rows)  # type: ignore[untyped-decorator]
    def _(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pairs = zip(*(_vectors(builder, sig.return_type, arg) for arg in args), strict=True)
        results = [getattr(builder, instruction)(*pair, flags=FLAGS) for pair in pairs]
        return _rows(context, builder, sig.return_type, results)

    @lower_builtin(operation, Lanes, Rows)  # type: ignore[untyped-decorator]
    def _(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = _vectors(builder, sig.return_type, args[1])
        results = [getattr(builder, instruction)(args[0], v, flags=FLAGS) for v in vectors]
        return _rows(context, builder, sig.return_type, results)


def _vectors(builder: Any, rows_type: Any, rows: Any) -> list[Any]:
    return [builder.extract_value(rows, b) for b in range(rows_type.count)]


def _rows(context: Any, builder: Any, rows_type: Any, vectors: list[Any]) -> Any:
    rows = ir.Constant(context.get_value_type(rows_type), ir.Undefined)
    for b, vector in enumerate(vectors):
        rows = builder.insert_value(rows, vector, b)
    return rows


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")
for _inplace, _instruction in (("iadd", "fadd"), ("isub", "fsub"), ("imul", "fmul")):
    _define(getattr(operator, _inplace), _instruction)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, i: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    first = builder.mul(i, ir.Constant(i.type, LANES))
    vector = context.get_value_type(Lanes(array_type.dtype))
    return builder.bitcast(builder.gep(data, [first]), vector.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def load(typingctx: Any, array: Any, i: Any) -> Any:
    """Return vector i of a contiguous array."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args)
        return builder.load(pointer, align=context.get_abi_sizeof(_element(context, sig)))

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typingctx: Any, array: Any, i: Any, lanes: Any) -> Any:
    """Set vector i of a contiguous array."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], pointer, align=context.get_abi_sizeof(_element(context, sig)))
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes(array.dtype)), generate


@intrinsic  # type: ignore[untyped-decorator]
def load_rows(typingctx: Any, array: Any, i: Any, group: Any) -> Any:
    """Return as many vectors as the tuple ``group`` is long, from vector i on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        align = context.get_abi_sizeof(_element(context, sig))
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        steps = (builder.gep(pointer, [ir.Constant(ir.IntType(64), b)]) for b in range(group.count))
        vectors = [builder.load(step, align=align) for step in steps]
        return _rows(context, builder, sig.return_type, vectors)

    return Rows(array.dtype, group.count)(array, types.intp, group), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_rows(typingctx: Any, array: Any, i: Any, rows: Any) -> Any:
    """Set the vectors from i on."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        align = context.get_abi_sizeof(_element(context, sig))
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        for b, vector in enumerate(_vectors(builder, rows, args[2])):
            step = builder.gep(pointer, [ir.Constant(ir.IntType(64), b)])
            builder.store(vector, step, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, rows), generate


@intrinsic  # type: ignore[untyped-decorator]
def zero_rows(typingctx: Any, array: Any, group: Any) -> Any:
    """Return as many zero vectors as the tuple ``group`` is long."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(sig.return_type), None)

    return Rows(array.dtype, group.count)(array, group), generate


@intrinsic  # type: ignore[untyped-decorator]
def add_dot(typingctx: Any, total: Any, x: Any, y: Any) -> Any:
    """Return ``total`` plus the sum over the rows of x * y, one vector.

    The products are added up before they meet the total, or every one would wait for it.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sums: list[Any] = [None, None]
        pairs = zip(*(_vectors(builder, x, rows) for rows in args[1:]), strict=True)
        for b, (u, v) in enumerate(pairs):
            term = builder.fmul(u, v, flags=FLAGS)
            before = sums[b % 2]
            sums[b % 2] = term if before is None else builder.fadd(before, term, flags=FLAGS)
        result = args[0]
        for part in sums[: x.count]:
            result = builder.fadd(result, part, flags=FLAGS)
        return result

    return total(total, x, y), generate


@intrinsic  # type: ignore[untyped-decorator]
def zeros(typingctx: Any, array: Any) -> Any:
    """Return the zero vector of the array's type."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(sig.return_type), None)

    return Lanes(array.dtype)(array), generate


@intrinsic  # type: ignore[untyped-decorator]
def spread(typingctx: Any, array: Any, i: Any) -> Any:
    """Return the vector whose numbers are all ``array[i]``, of the flat array."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return _fill(context, builder, sig, builder.load(builder.gep(data, [args[1]])))

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def constant(typingctx: Any, array: Any, value: Any) -> Any:
    """Return the vector whose numbers are all ``value``, in the array's type."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = context.cast(builder, args[1], types.float64, sig.args[0].dtype)
        return _fill(context, builder, sig, number)

    return Lanes(array.dtype)(array, types.float64), generate


def _fill(context: Any, builder: Any, sig: Any, number: Any) -> Any:
    vector = context.get_value_type(sig.return_type)
    first = ir.Constant(ir.IntType(32), 0)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), number, first)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), everywhere)


@intrinsic  # type: ignore[untyped-decorator]
def take(typingctx: Any, counter: Any) -> Any:
    """Return ``counter[0]`` and add one to it, in one step that no other thread can interrupt."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


def _element(context: Any, sig: Any) -> Any:
    return context.get_value_type(sig.args[0].dtype)
