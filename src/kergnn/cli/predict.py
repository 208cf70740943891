"""``kergnn predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from kergnn.cli.display import reporting
from kergnn.data import load_graphs
from kergnn.data.store import write_atomic
from kergnn.runs import load_run, prediction_table
from kergnn.runs import predict as predict_graphs


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    input: Annotated[str, typer.Argument(help="A JSON-lines file, a TU folder or a named set.")],
    out: Annotated[Path | None, typer.Option(help="CSV file; by default standard output.")] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """Predict the classes of new graphs (or their nodes), with probabilities, as CSV."""
    trained = load_run(run)
    graphs = load_graphs(input, data_mirror)
    with reporting(quiet=out is None) as reporter:
        probabilities = predict_graphs(trained, graphs, reporter)
    table = prediction_table(
        trained.model.task,
        graphs,
        torch.arange(len(probabilities)),
        probabilities,
        trained.class_names,
    )
    if out is None:
        typer.echo(table, nl=False)
    else:
        write_atomic(out, table.encode())
        typer.echo(f"{len(probabilities)} predictions in {out}")
