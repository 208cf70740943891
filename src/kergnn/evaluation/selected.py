"""The configuration that most folds of an evaluation selected, as a TOML file to train with.

No fold looked at its test part to decide, but counting all folds has seen all data. So what such a
configuration scores on one of these folds is no independent estimate; the evaluation's score is.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from kergnn._hints import counted
from kergnn.config import ConfigError, RunConfig, write_toml
from kergnn.data import NUM_SPLITS
from kergnn.data.store import write_atomic
from kergnn.evaluation.protocol import OWN
from kergnn.evaluation.results import Result
from kergnn.evaluation.store import safe_name
from kergnn.evaluation.trial import Record

_HEADER = """\
# {dataset}, {model}: what {count} of {folds} folds selected, of {configs}.
# The evaluation's mean test accuracy is {mean:.1f} % (kergnn table).
# Choosing by counting folds has seen all data: a test accuracy of this configuration on one of
# these folds is not an independent estimate.
"""


def selected_config(record: Record) -> tuple[RunConfig, int]:
    """Return the configuration that most folds selected, without fold and seed, and how many did.

    Among equals the better mean validation score decides, where it is recorded, then the order of
    the folds. A set of one's own has no name that could be trained on, so it is left out.
    """
    elsewhere: Record = {"fold": RunConfig.fold, "seed": RunConfig.seed}
    if record["dataset"].endswith(OWN):
        elsewhere["dataset"] = RunConfig.dataset
    chosen = [RunConfig.from_record({**fold["config"], **elsewhere}) for fold in record["folds"]]
    counts = Counter(chosen)
    best = max(counts, key=lambda config: (counts[config], _validation(record, config)))
    return best, counts[best]


def write_selected(results: Iterable[Result], folder: Path, model: str | None) -> list[Path]:
    """Write a file for each evaluation that has all folds; returns their paths.

    Args:
        results: what is in a store; published results are passed over.
        folder: where the files go.
        model: only this model; ``None`` for all.
    """
    written = []
    for result in results:
        if result.published or result.folds != NUM_SPLITS or model not in (None, result.model):
            continue
        path = folder / f"{_stem(result.dataset, result.model)}.toml"
        write_atomic(path, _to_toml(result).encode())
        written.append(path)
    return written


def shipped_config(dataset: str, model: str) -> Path:
    """Return the file that is shipped for a data set and a model."""
    folder = Path(str(files("kergnn").joinpath("configs", "selected")))
    known = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    stem = _stem(dataset, model)
    if stem not in known or Path(dataset).exists():  # data of one's own, whatever they are called
        raise ConfigError(
            f"no selected configuration is shipped for {model} on {dataset}; there are those of "
            f"kergnn on {', '.join(known)}, and kergnn table --configs writes others"
        )
    return known[stem]


def _to_toml(result: Result) -> str:
    config, count = selected_config(result.record)
    defaults = RunConfig().to_dict()
    header = _HEADER.format(
        dataset=result.dataset,
        model=result.model,
        count=count,
        folds=NUM_SPLITS,
        configs=counted(result.record["num_configs"], "configuration"),
        mean=100 * (result.mean or 0),
    )
    changed = {k: v for k, v in config.to_dict().items() if k not in defaults or v != defaults[k]}
    return header + write_toml(changed)


def _validation(record: Record, config: RunConfig) -> float:
    """Return the mean validation score of a configuration, if the record has it."""
    values = config.to_dict()
    for row in record.get("validation", ()):
        if all(values.get(key) == value for key, value in row["values"].items()):
            return statistics.fmean(row["scores"].values())
    return -math.inf


def _stem(dataset: str, model: str) -> str:
    name = safe_name(dataset.lower())
    return name if model == "kergnn" else f"{name}-{model}"
