"""``kergnn train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kergnn.config import ConfigError, RunConfig, parse_assignment, read_toml


def train(
    dataset: Annotated[
        str | None,
        typer.Argument(help="A named set (kergnn datasets), a TU folder or a JSON-lines file."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Which model (kergnn models; default {RunConfig.model}).")
    ] = None,
    task: Annotated[str | None, typer.Option(help="graph or node.")] = None,
    kernel: Annotated[
        str | None, typer.Option(help=f"rw, rw-step, drw or gcn (default {RunConfig.kernel}).")
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help=f"Number of layers (default {RunConfig.num_layers}).")
    ] = None,
    hidden: Annotated[
        int | None,
        typer.Option(help=f"Number of filters of a layer (default {RunConfig.hidden_channels})."),
    ] = None,
    filter_size: Annotated[
        int | None,
        typer.Option(help=f"Number of nodes of a filter (default {RunConfig.filter_size})."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help=f"Longest walk (default {RunConfig.num_steps}).")
    ] = None,
    hops: Annotated[
        int | None, typer.Option(help=f"Radius of the ego-graphs (default {RunConfig.num_hops}).")
    ] = None,
    max_nodes: Annotated[
        int | None,
        typer.Option(help=f"Largest size of an ego-graph (default {RunConfig.max_nodes})."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Recipe: label, attr, degree, onehot-degree, binned-degree, wl, subtrees, walks, "
            "cliques, neighbors, const, or a+b."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help=f"Largest number of epochs (default {RunConfig.epochs}).")
    ] = None,
    fold: Annotated[
        int | None,
        typer.Option(help=f"Which of the ten splits, from 0 (default {RunConfig.fold})."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help=f"Seed of all randomness (default {RunConfig.seed}).")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help=f"auto, cpu or cuda (default {RunConfig.device}).")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads (default 1); results depend on it in the last digits."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="TOML file with any of the keys; selected: the one shipped."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any key.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory; by default runs/NAME, or runs/NAME-2 after it."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run.")] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html at the end.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """Train on one split of a data set, MUTAG by default, and leave a run directory.

    Trains with Adam, selects the epoch by the validation part, then looks at the test part once.
    Later settings win: defaults, --config, options, --set. A run that was interrupted or killed
    goes on with --resume and ends as if nothing had happened. --config selected trains with what
    most folds of a stored evaluation selected; test figures are not independent then.
    """
    from kergnn._threads import use_threads
    from kergnn.cli.display import show_results
    from kergnn.reporting import reporting
    from kergnn.runs import resume_run, start_run

    flags = {
        "dataset": dataset,
        "model": model,
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
        own = {"threads": threads, "out": out, "force": force}
        extra += [name for name, value in own.items() if value]
        if extra:
            raise ConfigError(
                f"--resume goes on with a run as it is: {extra[0]} is fixed, leave it out"
            )
        directory = resume
    else:
        given |= dict(map(parse_assignment, set_ or []))
        settings = RunConfig().replace({**_read(config, RunConfig().replace(given)), **given})
        directory = _prepare(out, settings.dataset, force)
    try:
        with reporting(quiet) as reporter, use_threads(threads or 1):
            if resume is not None:
                results = resume_run(directory, data_mirror, reporter)
            else:
                results = start_run(settings, directory, data_mirror, reporter)
    except KeyboardInterrupt:
        if (directory / "config.toml").is_file():
            typer.echo(f"kergnn: interrupted; kergnn train --resume {directory} goes on", err=True)
        raise
    if config == "selected":
        typer.echo("the settings were chosen by all folds: test figures are not independent")
    show_results(results, str(directory))
    if report:
        _report(directory, data_mirror, quiet)


def _read(config: str | None, given: RunConfig) -> dict[str, Any]:
    """Read the keys of a file, which may be the one that is shipped for the set and the model."""
    if config != "selected":
        return read_toml(Path(config)) if config else {}
    from kergnn.evaluation.selected import shipped_config

    return read_toml(shipped_config(given.dataset, given.model))


def _report(directory: Path, data_mirror: Path | None, quiet: bool) -> None:
    """Write the report of a run of a KerGNN; that it fails must not make the training fail."""
    from kergnn.config import load_config

    if load_config(directory / "config.toml").model != "kergnn":
        return
    if not quiet:
        typer.echo("writing the report")
    try:
        from kergnn._threads import use_threads
        from kergnn.explain.report import write_report
        from kergnn.explain.subject import open_run
        from kergnn.runs import threads_of

        with use_threads(threads_of(directory)):
            path = write_report(open_run(directory, data_mirror), directory)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        typer.echo(f"kergnn: warning: no report could be written ({reason})", err=True)
    else:
        typer.echo(f"{'report':<24}{path}")


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
        if not (out / "config.toml").is_file():
            raise ConfigError(f"{out}: not empty and not a run, so --force does not replace it")
    return out
