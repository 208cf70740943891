"""``kergnn evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kergnn.config import ConfigError, parse_assignment


class NoResultError(RuntimeError):
    """An evaluation in which every fold failed."""

    exit_code = 1

    def format_message(self) -> str:
        """Return the line that is shown."""
        return str(self)


def evaluate(
    dataset: Annotated[
        str, typer.Argument(help="A named set (kergnn datasets), a TU folder or a JSON-lines file.")
    ],
    model: Annotated[str, typer.Option(help="Which model (kergnn models).")] = "kergnn",
    grid: Annotated[
        Path | None,
        typer.Option(help="TOML file: a list is searched. By default a small grid for the set."),
    ] = None,
    search: Annotated[str, typer.Option(help="grid, random or halving.")] = "grid",
    trials: Annotated[
        int | None, typer.Option(help="Draw this many configurations instead of taking all.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(help="serial, processes or ray; by default serial for one worker."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of trials at the same time.")] = 1,
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster; without it one is started here.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    folds: Annotated[int, typer.Option(help="How many of the ten folds, from the first.")] = 10,
    repeats: Annotated[
        int, typer.Option(min=1, help="Trainings of the selected configuration.")
    ] = 3,
    select_only: Annotated[
        bool,
        typer.Option("--select-only", help="Show validation scores; leave the test parts alone."),
    ] = False,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="Train the selected configuration on the validation part too, all epochs.",
        ),
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Largest number of epochs, of networks.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of a trial.")] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Fix any key.")
    ] = None,
    trial_timeout: Annotated[
        float | None, typer.Option(help="Seconds a trial may take; then it is out of resources.")
    ] = None,
    trial_memory: Annotated[
        float | None, typer.Option(help="Gigabytes a trial may take (2**30 bytes).")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run trials again that failed before.")
    ] = False,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """Evaluate a model strictly: select in every fold by validation, then test once.

    Ten outer folds; in each, the configuration with the best validation score is trained again with
    other seeds, and their mean test accuracy is the fold's score. Every trial is stored as soon as
    it is finished: after an interruption, even kill -9, the same command goes on. Several processes
    may work on one store. kergnn table shows what is there.
    """
    from kergnn.cli.progress import evaluating, show_evaluation, show_selection
    from kergnn.evaluation import (
        Limits,
        ResultStore,
        SearchSpace,
        default_space,
        make_executor,
        make_plan,
    )
    from kergnn.evaluation import evaluate as run_evaluation
    from kergnn.models import model_info

    space = default_space(dataset, model) if grid is None else SearchSpace.read(grid)
    fixed = dict(map(parse_assignment, set_ or []))
    if epochs is not None and model_info(model).kind != "kernel":  # which has no epochs to limit
        fixed["epochs"] = epochs
    space = space.fixed(fixed)
    if ray_address is not None and executor not in (None, "ray"):
        raise ConfigError(f"--ray-address needs --executor ray, not {executor}")
    memory = None if trial_memory is None else round(trial_memory * 2**30)
    limits = Limits(trial_timeout, memory)
    if select_only and search == "halving":
        raise ConfigError("--select-only needs all epochs: --search halving has few of them")
    if select_only and refit:
        raise ConfigError("--select-only assesses nothing, so that there is nothing to --refit")
    automatic = "ray" if ray_address else "processes" if workers > 1 or limits else "serial"
    runner = make_executor(
        executor or automatic, workers, data_mirror, threads, ray_address, limits
    )
    plan = make_plan(
        dataset,
        space,
        model,
        search,
        trials,
        folds,
        0 if select_only else repeats,
        seed=seed,
        mirror=data_mirror,
        refit=refit,
    )
    try:
        with evaluating(plan, quiet) as report:
            record = run_evaluation(plan, ResultStore(store), runner, report, retry_failed)
    except KeyboardInterrupt:
        typer.echo("kergnn: interrupted; the same command goes on", err=True)
        raise
    if select_only:
        show_selection(record, plan.configs[0].metric)
        if not record["validation"]:
            raise NoResultError("no configuration could be trained")
        return
    show_evaluation(record, store)
    if not record["folds_done"]:
        key = next(iter(record["folds"][0]["failed"]))
        failed = ResultStore(store).trial(record["dataset"], key) or {}
        raise NoResultError(f"no fold could be finished: {failed.get('error')} ({key}.json)")
