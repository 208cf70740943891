"""``kergnn predict``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from kergnn.config import ConfigError


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    input: Annotated[str, typer.Argument(help="A JSON-lines file, a TU folder or a named set.")],
    out: Annotated[Path | None, typer.Option(help="CSV file; by default standard output.")] = None,
    unknown: Annotated[
        str, typer.Option(help="Labels the model does not know: error, or zeros.")
    ] = "error",
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """Predict the classes of new graphs (or their nodes), with probabilities, as CSV.

    With --unknown zeros a node whose label was not seen in training has no label.
    """
    import torch

    from kergnn._threads import use_threads
    from kergnn.data import load_graphs
    from kergnn.data.store import write_atomic
    from kergnn.outputs import prediction_table
    from kergnn.reporting import reporting
    from kergnn.runs import load_run, threads_of
    from kergnn.runs import predict as predict_graphs

    if out is not None and out.exists() and Path(input).exists() and out.samefile(input):
        raise ConfigError(f"{out}: the output would overwrite the input")
    trained = load_run(run)
    graphs = load_graphs(input, data_mirror)
    with reporting(quiet=out is None) as reporter, use_threads(threads_of(run)):
        probabilities = predict_graphs(trained, graphs, reporter, unknown)
    table = prediction_table(
        trained.config.task or graphs.task,
        graphs,
        torch.arange(len(probabilities)),
        probabilities,
        trained.class_names,
    )
    if out is None:
        typer.echo(table, nl=False)
    else:
        write_atomic(out, table.encode())
        typer.echo(f"{len(probabilities)} predictions in {out}{_accuracy(table)}")


def _accuracy(table: str) -> str:
    """Return in words how many predictions are right, where classes were given."""
    rows = [row for row in csv.DictReader(table.splitlines()) if row.get("true")]
    right = sum(row["true"] == row["predicted"] for row in rows)
    return f"; {right} of {len(rows)} are right" if rows else ""
