"""The Planetoid files of Cora, Citeseer and Pubmed.

They are pickles. A mirror is somebody's folder, so they are read by an unpickler that knows arrays,
sparse matrices and plain containers, and nothing that could run code.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from kergnn.data.graphset import DataError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")

_ALLOWED = {
    ("collections", "defaultdict"),
    ("__builtin__", "list"),
    ("builtins", "list"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
    ("_codecs", "encode"),
}
_RECONSTRUCT = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _RECONSTRUCT:
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        if name == "csr_matrix" and (module, name) in _ALLOWED:
            return sp.csr_matrix
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise DataError(f"it asks for {module}.{name}, which no data file needs")


def read_planetoid(folder: Path, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return edge index (2, E), features (N, d) and classes (N,), -1 for nodes without a class.

    Test nodes come in the order of ``test.index``. Citeseer's ids have gaps: 15 papers without text
    and topic, which stay in the graph as nodes without features and class.
    """
    content = {}
    for part in PARTS[:-1]:
        path = folder / f"ind.{name.lower()}.{part}"
        try:
            with path.open("rb") as file:
                content[part] = _Unpickler(file, encoding="latin1").load()
        except (DataError, pickle.UnpicklingError, EOFError, AttributeError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({error})") from None
    index_file = folder / f"ind.{name.lower()}.test.index"
    try:
        order = np.loadtxt(index_file, dtype=np.int64, ndmin=1)
        first = len(content["ally"])
        num_nodes = int(order.max()) + 1
        x = np.zeros((num_nodes, content["allx"].shape[1]), dtype=np.float32)
        y = np.full(num_nodes, -1)
        x[:first], y[:first] = content["allx"].toarray(), content["ally"].argmax(1)
        x[order], y[order] = content["tx"].toarray(), content["ty"].argmax(1)
        pairs = [(a, b) for a, neighbours in content["graph"].items() for b in neighbours]
        edge_index = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{folder}: the files of {name} do not fit together ({error})") from None
    return torch.from_numpy(edge_index), torch.from_numpy(x), torch.from_numpy(y)
