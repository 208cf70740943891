"""``kergnn train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kergnn.cli.display import reporting, show_results
from kergnn.config import ConfigError, RunConfig, parse_assignment, read_toml
from kergnn.runs import resume_run, start_run


def train(
    dataset: Annotated[
        str | None,
        typer.Argument(help="A named set (kergnn datasets), a TU folder or a JSON-lines file."),
    ] = None,
    task: Annotated[str | None, typer.Option(help="graph or node.")] = None,
    kernel: Annotated[str | None, typer.Option(help="rw, rw-step, drw or gcn.")] = None,
    layers: Annotated[int | None, typer.Option(help="Number of layers.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Number of filters of a layer.")] = None,
    filter_size: Annotated[int | None, typer.Option(help="Number of nodes of a filter.")] = None,
    steps: Annotated[int | None, typer.Option(help="Longest walk.")] = None,
    hops: Annotated[int | None, typer.Option(help="Radius of the ego-graphs.")] = None,
    max_nodes: Annotated[int | None, typer.Option(help="Largest size of an ego-graph.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Recipe: label, attr, degree, onehot-degree, const, or a+b.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Largest number of epochs.")] = None,
    fold: Annotated[int | None, typer.Option(help="Which of the ten splits, from 0.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with any of the keys.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; by default runs/NAME.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run.")] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """Train on one split of a data set, MUTAG by default, and leave a run directory.

    Trains with Adam, selects the epoch by the validation part, then looks at the test part once.
    Later settings win: defaults, --config, options, --set. A run that was interrupted or killed
    goes on with --resume and ends as if nothing had happened.
    """
    flags = {
        "dataset": dataset,
        "task": task,
        "kernel": kernel,
        "num_layers": layers,
        "hidden_channels": hidden,
        "filter_size": filter_size,
        "num_steps": steps,
        "num_hops": hops,
        "max_nodes": max_nodes,
        "features": features,
        "epochs": epochs,
        "fold": fold,
        "seed": seed,
        "device": device,
    }
    given: dict[str, Any] = {k: v for k, v in flags.items() if v is not None}
    if resume is not None:
        extra = [*given, *(["config"] if config else []), *(["set"] if set_ else [])]
        if extra or out is not None:
            raise ConfigError(
                f"--resume goes on with a run as it is: {(extra or ['out'])[0]} is fixed"
            )
        directory = resume
    else:
        values = {**(read_toml(config) if config else {}), **given}
        settings = RunConfig().replace({**values, **dict(map(parse_assignment, set_ or []))})
        directory = _prepare(out, settings.dataset, force)
    try:
        with reporting(quiet) as reporter:
            if resume is not None:
                results = resume_run(directory, data_mirror, reporter)
            else:
                results = start_run(settings, directory, data_mirror, reporter)
    except KeyboardInterrupt:
        if (directory / "config.toml").is_file():
            typer.echo(f"kergnn: interrupted; kergnn train --resume {directory} goes on", err=True)
        raise
    show_results(results, str(directory))


def _prepare(out: Path | None, dataset: str, force: bool) -> Path:
    """Return the run directory, which is new, empty, or a run to be replaced."""
    if out is None:
        name = Path(dataset).stem
        number, out = 1, Path("runs") / name
        while not force and out.exists() and any(out.iterdir()):
            number += 1
            out = Path("runs") / f"{name}-{number}"
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: not a directory")
    if out.exists() and any(out.iterdir()):
        if not force:
            raise ConfigError(f"{out}: not empty; --force replaces a run, --resume goes on with it")
        _remove_run(out)
    return out


def _remove_run(out: Path) -> None:
    """Remove the files of a run, and nothing else."""
    for name in (
        "results.json",
        "model.safetensors",
        "checkpoint.safetensors",
        "metrics.csv",
        "predictions.csv",
        "curves.svg",
        "run.json",
        "config.toml",
    ):
        (out / name).unlink(missing_ok=True)
