"""``kergnn table``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kergnn.config import ConfigError


def table(
    store: Annotated[
        Path | None, typer.Option(help="Folder of the results.  [default: results]")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="text, markdown, csv, latex or html.")
    ] = "text",
    datasets: Annotated[
        list[str] | None, typer.Option("--dataset", help="Only this set; may be repeated.")
    ] = None,
    published: Annotated[
        bool, typer.Option(help="Show the paper's numbers beside the stored ones.")
    ] = True,
    summary: Annotated[
        bool, typer.Option("--summary", help="Only KerGNN, below the best published and measured.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--all-evaluations",
            help="Tell of all evaluations of a model on a set, not only of the one that counts.",
        ),
    ] = False,
    ensembles: Annotated[
        bool,
        typer.Option(
            "--ensembles", help="Show what the networks of a fold reach together, in further rows."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    configs: Annotated[
        Path | None,
        typer.Option(help="Write what most folds selected, as TOML, to this folder; no table."),
    ] = None,
    all_models: Annotated[
        bool, typer.Option("--all-models", help="With --configs: not only those of kergnn.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Write accuracy against epoch time, of networks, to this SVG file."),
    ] = None,
) -> None:
    """Show all stored results beside the published ones.

    Test accuracy in per cent, mean and standard deviation over the folds; below it what was
    selected, and a paired test against the best other model in the store. In CSV one row is one
    result. Of several evaluations of a model on a set the most thorough counts,
    never the best; --all-evaluations tells of the others. --configs writes a file for every set
    whose ten folds are done, for kergnn train --config.
    """
    from kergnn.data.store import write_atomic
    from kergnn.evaluation import ResultStore
    from kergnn.evaluation.ensembles import ensemble_results
    from kergnn.evaluation.results import published_results, stored_results, summarized
    from kergnn.evaluation.selected import write_selected
    from kergnn.evaluation.sheets import STYLES
    from kergnn.evaluation.table import format_table, plot_accuracy

    if summary and every:
        raise ConfigError("--all-evaluations has no place in a summary: leave out one of the two")
    styles = [*STYLES, "csv"]
    if format_ not in styles:
        raise ConfigError(f"format is {format_!r}: it must be one of {', '.join(sorted(styles))}")
    named, store = store is not None, store or Path("results")
    if not store.is_dir() and (named or not published):
        raise ConfigError(f"{store}: no such folder; kergnn evaluate writes results")
    records = ResultStore(store)
    stored = stored_results(records, every=every)
    results = [*(published_results() if published else []), *stored]
    if datasets:
        known = {result.dataset.lower(): result.dataset for result in results}
        for name in datasets:
            if name.lower() not in known:
                names = ", ".join(sorted(known.values())) or "no set"
                raise ConfigError(f"dataset is {name!r}: there are results for {names}")
        wanted = {known[name.lower()] for name in datasets}
        results = [result for result in results if result.dataset in wanted]
    if not store.is_dir():
        typer.echo(f"kergnn: no folder {store} here: only what the paper has", err=True)
    elif results and all(result.published for result in results):
        typer.echo(f"kergnn: {store}: no finished fold here: only what the paper has", err=True)
    if not results:
        raise ConfigError(f"{store}: no results here; kergnn evaluate writes them")
    counting = [result for result in results if result.counts]
    if configs is not None:
        written = write_selected(counting, configs, None if all_models else "kergnn")
        if not written:
            which = "" if all_models else " of kergnn"
            raise ConfigError(f"{store}: no evaluation{which} here has all ten folds")
        typer.echo("\n".join(f"{path} written" for path in written))
    shown = summarized(counting) if summary else results
    if ensembles:
        shown = [*shown, *ensemble_results(shown, records)]
    text = format_table(shown, format_, with_details=not summary)
    if out is not None:
        write_atomic(out, text.encode())
        typer.echo(f"{out} written")
    elif configs is None:
        typer.echo(text, nl=False)
    if plot is not None:
        picture = plot_accuracy(counting)
        if picture is None:
            raise ConfigError(f"{store}: nothing to plot, there are no measured results")
        write_atomic(plot, picture)
