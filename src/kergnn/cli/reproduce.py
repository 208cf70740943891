"""``kergnn reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    dataset: Annotated[
        str, typer.Argument(help="A named set (kergnn datasets), a TU folder or a JSON-lines file.")
    ],
    model: Annotated[str, typer.Option(help="Which model (kergnn models).")] = "kergnn",
    fold: Annotated[int, typer.Option(help="Which of the folds, from 0.")] = 0,
    run: Annotated[
        int | None, typer.Option(help="Which training of the fold, from 0; by default all.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of a training; by default as stored.")
    ] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """Train a stored fold again and compare every digit.

    Takes the evaluation that kergnn table shows and trains the selected configuration of a fold
    with the stored seeds; the store is not changed. The exit code is 0 only if all figures of test,
    validation and epochs, and all predicted classes and probabilities are the same, to the digits
    that are stored. Otherwise a line tells what is not as it was: versions, the source code of this
    package, the processor, the code that libraries take for it.
    """
    from rich.console import Console
    from rich.table import Table

    from kergnn.evaluation import ResultStore
    from kergnn.evaluation.reproduce import reproduce as train_again

    console = Console(highlight=False, soft_wrap=True, markup=False)
    with console.status("reproduce") as status:
        found = train_again(
            ResultStore(store), dataset, model, fold, run, data_mirror, threads, status.update
        )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("run", "figure", "stored", "again", "equal"):
        table.add_column(column, no_wrap=True)
    for row in found.rows:
        number = "all" if row.run is None else str(row.run)
        table.add_row(number, row.figure, row.stored, row.again, "yes" if row.equal else "NO")
    console.print(table)
    part = "" if run is None else f"run {run} of "
    name = f"{part}fold {found.fold} of {model} on {found.dataset}"
    if not found.equal:
        reasons = "; ".join(found.changed) or "all that its record tells of is as it was"
        typer.echo(f"kergnn: {name} is not what is stored: {reasons}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{name} is what is stored, to the last digit")
