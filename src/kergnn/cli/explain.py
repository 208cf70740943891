"""``kergnn explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    graphs: Annotated[
        list[int] | None,
        typer.Option(
            "--graphs",
            metavar="N",
            help="Graph (or node) to show, counted from 0; may be repeated, or several: 3 17.",
        ),
    ] = None,
    more: Annotated[
        list[int] | None, typer.Argument(hidden=True, metavar="[--graphs N...]")
    ] = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", help="Explain the logit of this class, not of the predicted one."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Draw edges from this part of a filter's largest weight.")
    ] = 0.5,
    out: Annotated[Path | None, typer.Option(help="Where to write; by default into RUN.")] = None,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Measure how true the explanations are, too.")
    ] = False,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="For --metrics: a run of another seed on the same data; repeatable."),
    ] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """Show what the filters learned and which nodes decided, as a report to be opened from disk.

    Writes report.html, which needs no network, and its pictures as SVG in figures/; with --metrics
    also explanation.json.
    """
    from kergnn._threads import use_threads
    from kergnn.explain.report import write_report
    from kergnn.explain.subject import open_run
    from kergnn.reporting import reporting
    from kergnn.runs import threads_of

    if more and not graphs:
        raise typer.BadParameter("a number is missing its option: --graphs 3 17")
    if compare and not metrics:
        raise typer.BadParameter("--compare needs --metrics")
    shown = [*(graphs or []), *(more or [])]
    with use_threads(threads_of(run)):
        with reporting(quiet=False) as reporter:
            subject, *others = [open_run(r, data_mirror, reporter) for r in [run, *(compare or [])]]
        subject.check_choice(shown, class_)  # before minutes of measuring
        scores = None
        if metrics:
            from kergnn.explain.metrics import doubt, measure_run

            scores = measure_run(subject, out or run, threshold, others)
            for name, value in scores.items():
                typer.echo(f"{name:<20} {value:.3f}")
            if doubt(scores):
                typer.echo(doubt(scores))
        path = write_report(subject, out or run, threshold, shown, class_, scores)
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB, opens in a browser without a network")
