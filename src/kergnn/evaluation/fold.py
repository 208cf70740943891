"""A fold of a set as a network takes it, kept for the next trial: most are of the same fold.

To cut a large set and to make its features takes longer than many an epoch.
"""

from __future__ import annotations

from typing import Any

from kergnn.config import RunConfig
from kergnn.data import Features, GraphSet, Split
from kergnn.models import model_info
from kergnn.prediction import Batches
from kergnn.preparation import batches_key, ego_graphs, hide_test, make_batches


class Fold:
    """A set without the test part, to train on, and with it, to predict it.

    Args:
        config: the configuration of the first trial.
        graphs: the whole set.
        split: its parts.
    """

    def __init__(self, config: RunConfig, graphs: GraphSet, split: Split) -> None:
        self.graphs, self.ego = graphs, ego_graphs(config, graphs)
        self.development = hide_test(graphs, self.ego, split)
        self._last: tuple[Any, Any] = None, None

    def with_test(self, config: RunConfig, features: Features) -> Batches:
        """Return the batches of all graphs, those of the test part included."""
        if self._last[0] != batches_key(config):
            self._last = None, None  # before more memory is taken
            # A kind of edges that only the test part has is none: no filter has learned it.
            made = make_batches(config, self.graphs, features, self.ego, unknown="zeros")
            self._last = batches_key(config), made
        batches: Batches = self._last[1]
        return batches


_last: list[tuple[Any, Fold]] = []


def prepare_fold(config: RunConfig, fingerprint: str, graphs: GraphSet, split: Split) -> Fold:
    """Return a fold, which is that of the last call if nothing that decides it differs.

    Args:
        config: the configuration.
        fingerprint: hash of all that the model sees of the data.
        graphs: the whole set.
        split: its parts.
    """
    hops = config.num_hops, config.max_nodes
    key = fingerprint, split.hash, model_info(config.model).kind, hops
    if not _last or _last[0][0] != key:
        _last.clear()  # before more memory is taken
        _last.append((key, Fold(config, graphs, split)))
    return _last[0][1]
