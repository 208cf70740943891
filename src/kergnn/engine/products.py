"""Matrix products of a tile of nodes, in vectors of LANES columns, six rows at a time.

Six vectors of sums are twelve registers of AVX for float32: every load from the table serves six
multiplications, and nothing is stored before the sum ends. Features of the first layer are often
one-hot: where most of a tile is zero, zeros are left out.
"""

from __future__ import annotations

from kergnn.engine.lanes import bare, load, spread, store, zeros
from kergnn.engine.members import Array

# A row with fewer than one number in four is cheaper number by number.
_DENSE = 4


@bare  # type: ignore[untyped-decorator]
def product(
    A: Array,
    first: int,
    count: int,
    width: int,
    table: Array,
    at: int,
    num: int,
    out: Array,
    to: int,
) -> None:
    """Set out[v, j] = sum over k of A[v, k] table[j, k], for ``count`` rows v, ``num`` vectors j.

    A is an array of rows of ``width`` numbers that begin at ``first``; ``at`` and ``to`` are the
    first vectors of ``table`` and ``out``. Past the last row, that row is computed again.
    """
    last = count - 1
    for v in range(0, count, 6):
        v1, v2, v3 = min(v + 1, last), min(v + 2, last), min(v + 3, last)
        v4, v5 = min(v + 4, last), min(v + 5, last)
        a0, a1, a2 = first + v * width, first + v1 * width, first + v2 * width
        a3, a4, a5 = first + v3 * width, first + v4 * width, first + v5 * width
        for j in range(num):
            s0, s1, s2, s3, s4, s5 = (zeros(out), zeros(out), zeros(out),
                                      zeros(out), zeros(out), zeros(out))  # fmt: skip
            for k in range(width):
                t = load(table, at + j * width + k)
                s0 += spread(A, a0 + k) * t
                s1 += spread(A, a1 + k) * t
                s2 += spread(A, a2 + k) * t
                s3 += spread(A, a3 + k) * t
                s4 += spread(A, a4 + k) * t
                s5 += spread(A, a5 + k) * t
            store(out, to + v * num + j, s0)
            store(out, to + v1 * num + j, s1)
            store(out, to + v2 * num + j, s2)
            store(out, to + v3 * num + j, s3)
            store(out, to + v4 * num + j, s4)
            store(out, to + v5 * num + j, s5)


@bare  # type: ignore[untyped-decorator]
def add_transposed_product(
    A: Array, first: int, count: int, width: int, rows: Array, num: int, out: Array, to: int
) -> None:
    """Add to out[j, k] the sum over v of A[v, k] rows[v, j]: the derivative by the table."""
    last = width - 1
    for j in range(num):
        for k in range(0, width, 6):
            # Numbers past the end are summed twice, and stored once.
            k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
            k4, k5 = min(k + 4, last), min(k + 5, last)
            o = to + j * width
            s0, s1, s2 = load(out, o + k), load(out, o + k1), load(out, o + k2)
            s3, s4, s5 = load(out, o + k3), load(out, o + k4), load(out, o + k5)
            a = first
            for v in range(count):
                t = load(rows, v * num + j)
                s0 += spread(A, a + k) * t
                s1 += spread(A, a + k1) * t
                s2 += spread(A, a + k2) * t
                s3 += spread(A, a + k3) * t
                s4 += spread(A, a + k4) * t
                s5 += spread(A, a + k5) * t
                a += width
            store(out, o + k, s0)
            store(out, o + k1, s1)
            store(out, o + k2, s2)
            store(out, o + k3, s3)
            store(out, o + k4, s4)
            store(out, o + k5, s5)


@bare  # type: ignore[untyped-decorator]
def is_sparse(A: Array, first: int, count: int, width: int) -> bool:
    """Return whether fewer than a quarter of the numbers of these rows are not zero."""
    found = 0
    for i in range(first, first + count * width):
        found += A[i] != 0
    return found * _DENSE < count * width


@bare  # type: ignore[untyped-decorator]
def sparse_product(
    A: Array,
    first: int,
    count: int,
    width: int,
    table: Array,
    at: int,
    num: int,
    out: Array,
    to: int,
) -> None:
    """Do what ``product`` does, leaving out what is zero."""
    for v in range(count):
        o = to + v * num
        for j in range(num):
            store(out, o + j, zeros(out))
        for k in range(width):
            if A[first + v * width + k] != 0:
                a = spread(A, first + v * width + k)
                for j in range(num):
                    store(out, o + j, load(out, o + j) + a * load(table, at + j * width + k))


@bare  # type: ignore[untyped-decorator]
def add_sparse_transposed_product(
    A: Array, first: int, count: int, width: int, rows: Array, num: int, out: Array, to: int
) -> None:
    """Do what ``add_transposed_product`` does, leaving out what is zero."""
    for v in range(count):
        for k in range(width):
            if A[first + v * width + k] != 0:
                a = spread(A, first + v * width + k)
                for j in range(num):
                    o = to + j * width + k
                    store(out, o, load(out, o) + a * load(rows, v * num + j))
