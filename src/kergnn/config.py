"""The configuration of a training run: one frozen dataclass, read from and written to TOML."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from kergnn._hints import did_you_mean


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and the value."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the outcome of a training run, but for the data themselves.

    TOML has no null: there ``None`` is the string "none". The keys from ``hidden_channels`` to
    ``restart`` are arguments of :class:`kergnn.KerGNN`, which is ``model = "kergnn"``;
    other models take those that they know. What only one of them knows is an option:
    ``options.alpha``.
    """

    # Data
    dataset: str = "MUTAG"
    task: str | None = None  # "graph" or "node"; by default what the data set is for
    features: str | None = None  # a recipe; by default labels and attributes, or the degree
    splits: str = "published"  # "published" where there are any, or "drawn"
    fold: int = 0
    # Model
    model: str = "kergnn"
    hidden_channels: int = 32
    num_layers: int = 2
    filter_size: int = 6
    num_steps: int = 2
    kernel: str = "rw"  # or several, as in "rw:16, drw:16"
    num_hops: int = 1
    max_nodes: int | None = 10
    # none: 64 for more than 100 features or one-hot degrees, else 0, which is no map
    input_channels: int | None = None
    normalize: str | None = "log"
    update: str | None = "mlp"
    step_weights: str | None = None  # "trainable", or numbers as in "1, 0.5, 0.1"
    norm: str | None = "batch"
    dropout: float | None = None  # none: 0.2 for graphs, 0.5 for nodes
    input_dropout: float | None = None  # none: 0 for graphs, 0.5 for nodes
    readout: str = "sum"
    head_channels: int | None = None  # none: as hidden_channels
    filter_init: str | None = None  # "ego": filters start as frequent shapes of ego-graphs
    hard_edges: bool | None = None  # edges of filters are there or not
    edge_penalty: float | None = None  # on the size of the filters' edges
    evidence_penalty: float | None = None  # on the size of the nodes' evidence
    restart: float | None = None  # for nodes: their logits are smoothed by personalised PageRank
    # Training
    epochs: int = 200
    patience: int = 60
    batch_size: int = 64
    learning_rate: float = 0.01
    schedule: str = "halve"  # every 50 epochs; or "cosine", "constant"
    keep_epoch: str | None = None  # "last", without early stopping; none: the best by validation
    weight_decay: float = 0.0
    clip: float | None = 5.0
    class_weights: bool = False
    metric: str = "accuracy"
    seed: int = 0  # below 2**32
    device: str = "auto"
    # Arguments of the model that no other has, by name
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> RunConfig:
        """Return the configuration of a record, which an earlier version may have written.

        A key that is gone since and was ``None`` decided nothing, and its hash does not count it.
        """
        kept = {k: v for k, v in values.items() if v is not None or k in _TYPES}
        return cls().replace(kept)

    def replace(self, values: Mapping[str, Any]) -> RunConfig:
        """Return a copy with some keys changed, each checked."""
        checked = _checked(values)
        options = dict(self.options)
        options |= {k.removeprefix(_OPTION): checked.pop(k) for k in [*checked] if _is_option(k)}
        return dataclasses.replace(self, **checked, options=tuple(sorted(options.items())))

    def to_dict(self) -> dict[str, Any]:
        """Return all keys and values, every option under a key of its own."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | {f"{_OPTION}{name}": value for name, value in values.pop("options")}

    def to_toml(self) -> str:
        """Return the configuration as TOML; ``None`` is the string none."""
        return write_toml(self.to_dict())

    @property
    def hash(self) -> str:
        """A short hash of all values but ``None``.

        So a new key leaves all hashes as they are, as long as ``None`` stands for what was before.
        """
        values = {k: v for k, v in self.to_dict().items() if v is not None}
        return hash_json(values)[:12]


def hash_json(values: Any) -> str:
    """Return a hash of plain values, whatever the order of their keys."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_TYPES = {k: v for k, v in typing.get_type_hints(RunConfig).items() if k != "options"}
_OPTION = "options."
_SCALARS = (bool, int, float, str)


def read_toml_table(path: Path) -> dict[str, Any]:
    """Read a TOML file as it is."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML ({error})") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read the keys that a TOML file sets."""
    values = read_toml_table(path)
    try:
        return _checked(values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def write_toml(values: Mapping[str, Any]) -> str:
    """Return keys and values as TOML that :func:`read_toml` reads."""
    plain = {k: "none" if v is None else v for k, v in values.items()}
    table = {k.removeprefix(_OPTION): plain.pop(k) for k in [*plain] if _is_option(k)}
    return tomli_w.dumps({**plain, "options": table} if table else plain)


def load_config(path: Path) -> RunConfig:
    """Read a whole configuration, as :meth:`RunConfig.to_toml` wrote it."""
    return RunConfig().replace(read_toml(path))


def parse_assignment(text: str) -> tuple[str, Any]:
    """Turn ``key=value`` into the key and its value; ``none`` is ``None``."""
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals:
        raise ConfigError(f"{text!r} is not of the form key=value")
    if _is_option(key):
        return key, _checked({key: _scalar(value)})[key]
    _known(key)
    if value.lower() in ("none", "null", "") and _optional(key):
        return key, None
    for convert in _converters(key):
        try:
            return key, _checked({key: convert(value)})[key]
        except (ValueError, ConfigError):
            continue
    raise ConfigError(f"{key} is {value!r}: it must be {_describe(key)}")


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    checked = {}
    for key, value in flatten_options(values).items():
        if _is_option(key):
            if not key.removeprefix(_OPTION).isidentifier() or type(value) not in _SCALARS:
                raise ConfigError(f"{key} is {value!r}: it must be a number, a string or a boolean")
            checked[key] = value
            continue
        _known(key)
        kinds = _kinds(key)
        if _optional(key) and value in ("none", ""):
            value = None
        if float in kinds and type(value) is int:
            value = float(value)
        if type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value)):
            raise ConfigError(f"{key} is {value!r}: it must be {_describe(key)}")
        checked[key] = value
    return checked


def flatten_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give every entry of the table ``options`` a key of its own."""
    flat = {key: value for key, value in values.items() if key != "options"}
    options = values.get("options", {})
    if not isinstance(options, Mapping):
        raise ConfigError(f"options is {options!r}: it must be a table")
    return flat | {f"{_OPTION}{name}": value for name, value in options.items()}


def _is_option(key: str) -> bool:
    return key.startswith(_OPTION)


def _scalar(text: str) -> Any:
    """Read a value as TOML would, or as a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _known(key: str) -> None:
    if key not in _TYPES:
        hint = did_you_mean(key, _TYPES)
        raise ConfigError(f"unknown key {key!r}{hint}; known are {', '.join(_TYPES)}")


def _kinds(key: str) -> tuple[type, ...]:
    hint = _TYPES[key]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _optional(key: str) -> bool:
    return type(None) in _kinds(key)


def _converters(key: str) -> list[Any]:
    def boolean(value: str) -> bool:
        return {"true": True, "false": False}[value.lower()]

    def guarded(value: str) -> bool:
        try:
            return boolean(value)
        except KeyError:
            raise ValueError(value) from None

    known = {bool: guarded, int: int, float: float, str: str}
    return [convert for kind, convert in known.items() if kind in _kinds(key)]


def _describe(key: str) -> str:
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    return " or ".join(names.get(kind, "none") for kind in _kinds(key))
