"""Search spaces, and how a configuration is selected from them.

A search space is a TOML file with keys of :class:`~kergnn.config.RunConfig`. A list of values is
searched, a single value is fixed, and a range of numbers is sampled (``--search random`` only)::

    num_layers = [1, 2, 3]
    epochs = 200
    learning_rate = {low = 0.001, high = 0.02, log = true}

A search is a generator: it yields the configurations to be tried next, is sent their scores on the
validation part in the same order, and returns the selected one. It is given nothing else, so the
test part cannot decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kergnn.config import ConfigError, RunConfig, flatten_options, read_toml_table
from kergnn.models import has_words, model_info

SEARCHES = ("grid", "random", "halving")

# What a trial scored on its validation part: the metric, then minus the loss; None if it failed.
Score: TypeAlias = tuple[float, float] | None
Search: TypeAlias = Generator[list[RunConfig], list[Score], RunConfig | None]

_LARGEST_GRID = 10_000

# What belongs to the protocol, not to a configuration.
_FIXED = ("dataset", "task", "fold", "seed", "model")
# What all configurations must have in common, or their scores could not be compared.
_COMMON = ("splits", "metric", "device")


@dataclass(frozen=True)
class Range:
    """A range of numbers to draw from."""

    low: float
    high: float
    log: bool = False

    def draw(self, generator: np.random.Generator) -> float:
        """Draw a number, evenly in the range or in its logarithm."""
        if self.log:
            return float(math.exp(generator.uniform(math.log(self.low), math.log(self.high))))
        return float(generator.uniform(self.low, self.high))


@dataclass(frozen=True)
class SearchSpace:
    """The values that are searched, by key."""

    choices: dict[str, list[Any] | Range]

    @classmethod
    def read(cls, path: Path) -> SearchSpace:
        """Read a TOML file, with every value checked."""
        try:
            return cls.from_values(read_toml_table(path))
        except ConfigError as error:
            text = str(error)
            raise ConfigError(text if text.startswith(str(path)) else f"{path}: {text}") from None

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> SearchSpace:
        """Make a space of lists (searched), tables (ranges) and single values (fixed)."""
        choices: dict[str, list[Any] | Range] = {}
        for key, value in flatten_options(values).items():
            _check_free(key)
            if isinstance(value, dict):
                choices[key] = _range(key, value)
                continue
            listed = value if isinstance(value, list) else [value]
            if not listed:
                raise ConfigError(f"{key} has no values")
            if key in _COMMON and len(listed) > 1:
                raise ConfigError(f"{key} is searched: all configurations must have the same")
            checked = [RunConfig().replace({key: item}) for item in listed]
            choices[key] = [config.to_dict()[key] for config in checked]
        return cls(choices)

    def fixed(self, values: dict[str, Any]) -> SearchSpace:
        """Return the space with some keys fixed to one value."""
        for key in values:
            _check_free(key)
        return SearchSpace({**self.choices, **{key: [value] for key, value in values.items()}})

    def grid(self, base: RunConfig) -> list[RunConfig]:
        """Return every combination of the listed values."""
        lists: list[list[tuple[str, Any]]] = []
        for key, values in self.choices.items():
            if isinstance(values, Range):
                raise ConfigError(f"{key} is a range: a grid needs a list, or use --search random")
            lists.append([(key, value) for value in values])
        size = math.prod(map(len, lists))
        if size > _LARGEST_GRID:
            raise ConfigError(f"the grid has {size:,} combinations: draw some of them by --trials")
        return _distinct([base.replace(dict(pairs)) for pairs in itertools.product(*lists)])

    def sample(self, base: RunConfig, trials: int, seed: int = 0) -> list[RunConfig]:
        """Draw distinct combinations, ``trials`` of them or as many as there are.

        The first of a larger sample are those of a smaller one, so that a search can grow.
        """
        generator = np.random.default_rng(seed)
        drawn: list[RunConfig] = []
        for _ in range(50 * trials):
            values = {
                key: choice.draw(generator)
                if isinstance(choice, Range)
                else choice[int(generator.integers(len(choice)))]
                for key, choice in self.choices.items()
            }
            drawn = _distinct([*drawn, base.replace(values)])
            if len(drawn) == trials:
                break
        return drawn


def default_grid(dataset: str, model: str) -> Path:
    """Return the search space that is shipped for a model and a data set."""
    model_info(model)
    folder = Path(str(files("kergnn").joinpath("configs")))
    known = folder / f"{dataset.lower()}.toml"
    own = Path(dataset).exists()  # whatever it is called
    if model == "kergnn" and known.is_file() and not own:
        return known
    path = folder / f"{model}.toml"
    if not path.is_file():
        raise ConfigError(f"there is no default grid for model {model!r}: name one with --grid")
    return path


def default_space(dataset: str, model: str) -> SearchSpace:
    """Return the shipped search space.

    A competitor may choose among the features that KerGNN may choose on this set, and its own: what
    is learned of the features is not for one of them alone. Kernels that count labels need labels,
    and none takes words.
    """
    space = SearchSpace.read(default_grid(dataset, model))
    features = SearchSpace.read(default_grid(dataset, "kergnn")).choices.get("features")
    info = model_info(model)
    if info.kind == "kergnn" or info.counts or not isinstance(features, list):
        return space
    if info.kind == "kernel":
        features = [recipe for recipe in features if not has_words(recipe)]
    return SearchSpace({**space.choices, "features": [None, *features]})


def exhaustive(configs: Sequence[RunConfig]) -> Search:
    """Try all and select the best."""
    scores = yield list(configs)
    return _best(configs, scores)


def halving(configs: Sequence[RunConfig], factor: int = 3) -> Search:
    """Try all with few epochs, the best third of them with three times as many, and so on.

    Every round starts again from nothing. A single one that is left is selected as it is: to train
    it with all epochs would decide nothing.
    """
    left = list(configs)
    rounds = max(0, math.ceil(math.log(len(left), factor) - 1e-9)) if left else 0
    for remaining in range(rounds, 0, -1):
        short = [
            config.replace({"epochs": max(1, config.epochs // factor**remaining)})
            for config in left
        ]
        scores = yield short
        ranked = [config for _, config in _ranked(left, scores)]
        left = ranked[: max(1, math.ceil(len(left) / factor))]
        if len(left) < 2:
            return left[0] if left else None
    scores = yield left
    return _best(left, scores)


def _check_free(key: str) -> None:
    if key in _FIXED:
        raise ConfigError(f"{key} is not searched: evaluate has an option or an argument for it")


def _ranked(
    configs: Sequence[RunConfig], scores: Sequence[Score]
) -> list[tuple[tuple[float, float], RunConfig]]:
    """Return those that did not fail, the best first; of equals the one listed first."""
    done = [(score, config) for score, config in zip(scores, configs, strict=True) if score]
    return sorted(done, key=lambda pair: pair[0], reverse=True)


def _best(configs: Sequence[RunConfig], scores: Sequence[Score]) -> RunConfig | None:
    ranked = _ranked(configs, scores)
    return ranked[0][1] if ranked else None


def _distinct(configs: list[RunConfig]) -> list[RunConfig]:
    return list(dict.fromkeys(configs))


def _range(key: str, value: dict[str, Any]) -> Range:
    try:
        made = Range(**value)
        any_number = isinstance(RunConfig().replace({key: made.low}).to_dict()[key], float)
        if any_number and made.low < made.high and (made.low > 0 or not made.log):
            return made
    except TypeError:
        pass
    raise ConfigError(
        f"{key} is {value!r}: a range needs low and high with low < high, above 0 with log, and a "
        "key that takes any number"
    )
