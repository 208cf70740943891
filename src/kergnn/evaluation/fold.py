"""A fold of a set as a network takes it, kept for the next trial: most are of the same fold.

To cut a large set and to make its features takes longer than many an epoch.
"""

from __future__ import annotations

from typing import Any

from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, Split
from kergnn.prediction import Batches
from kergnn.preparation import ego_graphs, hide_test, make_batches


class Fold:
    """A set without the test part, to train on, and with it, to predict it.

    Args:
        key: what decides all that is in it, the features of its batches included.
        config: a configuration with this key.
        graphs: the whole set.
        split: its parts.
    """

    def __init__(self, key: Any, config: RunConfig, graphs: GraphSet, split: Split) -> None:
        self.key, self.config, self.graphs = key, config, graphs
        self.ego = ego_graphs(config, graphs)
        self.development = hide_test(graphs, self.ego, split)
        self._whole: Batches | None = None

    def with_test(self, features: Features) -> Batches:
        """Return the batches of all graphs, those of the test part included."""
        if self._whole is None:
            # A kind of edges that only the test part has is none: no filter has learned it.
            unknown = "zeros"
            self._whole = make_batches(self.config, self.graphs, features, self.ego, unknown)
        return self._whole


_last: Fold | None = None


def forget_other_folds(key: Any) -> None:
    """Drop what is kept, unless it has this key."""
    global _last
    if _last is not None and _last.key != key:
        _last = None


def prepare_fold(key: Any, config: RunConfig, graphs: GraphSet, split: Split) -> Fold:
    """Return a fold, which is that of the last call if its key is the same."""
    global _last
    forget_other_folds(key)  # before more memory is taken
    fold = _last or Fold(key, config, graphs, split)
    _last = fold
    return fold
