"""The support vector machine that classifies graphs by their Gram matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC


class KernelMachine:
    """A C-SVM on a precomputed kernel.

    Args:
        num_classes: number of classes, those absent from the training part included.
        C: price of a margin violation.

    Shapes:
        - **fit:** Gram matrix of the training part (n, n), its classes (n,)
        - **predict, scores:** kernel values with the training part (m, n)
    """

    def __init__(self, num_classes: int, C: float = 1.0) -> None:
        if not C > 0:
            raise ValueError(f"C is {C!r}: it must be positive")
        self.num_classes, self.C = num_classes, C
        self.machine = SVC(kernel="precomputed", C=C, cache_size=500)

    def fit(self, K: NDArray[np.float64], y: NDArray[np.int64]) -> KernelMachine:
        """Train on the Gram matrix (n, n) and the classes (n,) of the training part."""
        self.classes = np.unique(y)
        if len(self.classes) > 1:
            self.machine.fit(K, y)
        return self

    def scores(self, K: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a decision value for every class: (m, num_classes).

        Between two classes they are the distance from the margin and its negative. A class absent
        from the training part has minus infinity.
        """
        scores = np.full((len(K), self.num_classes), -np.inf)
        if len(self.classes) == 1:
            scores[:, self.classes] = 0.0
            return scores
        value = self.machine.decision_function(K)
        if len(self.classes) == 2:
            value = np.stack([-value, value], axis=1)
        scores[:, self.classes] = value
        return scores

    def predict(self, K: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the class with the largest decision value: (m,)."""
        best: NDArray[np.int64] = self.scores(K).argmax(1)
        return best
