"""``kergnn bench``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from kergnn.config import ConfigError


def bench(
    datasets: Annotated[
        list[str] | None, typer.Option(help="Graph sets; may be repeated. By default all eight.")
    ] = None,
    layers: Annotated[
        list[int] | None, typer.Option(help="Depths; may be repeated. By default 1, 2 and 3.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Further models by name (kergnn models).")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds of turns.")] = 5,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="About a minute: MUTAG, 2 rounds (too few to trust a ratio), no memory."
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Where the record and the plot go.")] = Path(
        "results/bench"
    ),
    add: Annotated[
        bool, typer.Option("--add", help="Keep what the record in --out has; measure the rest.")
    ] = False,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """Time training epochs of KerGNN side by side with PyG's GIN, GraphSAGE and GCN.

    Contenders take turns in one process; ratios are the medians of the rounds. Also measured: one
    layer against a padded formulation and the bare matrix products, peak memory, the time to build
    the ego-graphs, compilation, and how time grows with the size of graph and filters. The record
    is written after each part; --add goes on with it.
    """
    from rich.console import Console

    from kergnn.bench import DEFAULT_DATASETS, format_tables, plot, run_bench
    from kergnn.data import mirror_dir
    from kergnn.data.store import write_atomic
    from kergnn.models import model_info
    from kergnn.runs import read_json

    for name in models or []:
        if "graph" not in model_info(name).tasks:
            raise ConfigError(f"models is {name!r}: bench times models that classify graphs")
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 120 + 18 * len(models or ())
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):  # before hours of measuring
        raise ConfigError(f"{place}: not a directory that can be written to")
    path = out / "bench.json"
    before = read_json(path) if add and path.is_file() else None

    def save(record: dict[str, Any]) -> None:
        write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())

    chosen = datasets or (["MUTAG"] if quick else list(DEFAULT_DATASETS))
    with console.status("bench") as status:

        def progress(text: str) -> None:
            if console.is_terminal:
                status.update(text)
            else:
                console.print(text)

        record = run_bench(
            chosen,
            layers or (1, 2, 3),
            2 if quick else repeats,
            mirror_dir(data_mirror),
            quick,
            models or (),
            progress,
            before,
            save,
        )
    for table in format_tables(record):
        console.print(table)
    write_atomic(out / "bench.svg", plot(record))
    console.print(f"{path} and {out / 'bench.svg'} written")
