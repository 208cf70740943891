"""Adjacency matrices: NumPy arrays, SciPy sparse matrices, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from kergnn.data.adapters.values import show
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.records import GraphRecord, split


def read_matrix(matrix: Any, where: str) -> GraphRecord:
    """Read a square, symmetric matrix of zeros and ones; the diagonal is for self-loops."""
    if isinstance(matrix, Tensor):
        matrix = matrix.detach().to_dense().cpu().numpy()
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise DataError(f"{where} is an array of shape {shape}: an adjacency matrix is square")
    if not sp.issparse(matrix) and np.asarray(matrix).dtype.kind not in "biuf":
        raise DataError(f"{where} is {show(matrix)}: an adjacency matrix holds zeros and ones")
    # An entry that is there twice means the sum; the matrix itself stays as it was given.
    summed = sp.csr_array(matrix, copy=True)
    summed.sum_duplicates()
    summed.eliminate_zeros()
    entries = summed.tocoo()
    strange = np.flatnonzero(entries.data != 1)  # also NaN
    if len(strange):
        a, b, value = (array[strange[0]] for array in (entries.row, entries.col, entries.data))
        raise DataError(
            f"{where}[{a}, {b}] is {value}: an adjacency matrix holds zeros and ones; edges have "
            "no weights here, and matrix != 0 drops them"
        )
    csr = entries.tocsr().astype(np.int8)
    one_way = sp.coo_array(csr > csr.T)
    if one_way.nnz:
        a, b = int(one_way.row[0]), int(one_way.col[0])
        raise DataError(
            f"{where}[{a}, {b}] is 1, but [{b}, {a}] is 0: an adjacency matrix is symmetric, edges "
            "have no direction here"
        )
    upper = entries.row <= entries.col
    edges = np.stack([entries.row[upper], entries.col[upper]], axis=1)
    return GraphRecord(shape[0], edges.astype(np.int64))


def to_adjacency(graphs: GraphSet) -> list[sp.csr_array]:
    """Return the adjacency matrices (n, n), without labels, attributes and classes."""
    made = []
    for record in split(graphs):
        row, col = np.asarray(record.edges, dtype=np.int64).reshape(-1, 2).T
        both = np.concatenate([row, col]), np.concatenate([col, row])
        shape = (record.num_nodes, record.num_nodes)
        matrix = sp.coo_array((np.ones(len(both[0])), both), shape=shape).tocsr()
        matrix.data[:] = 1.0  # an edge that is there twice
        made.append(matrix)
    return made
