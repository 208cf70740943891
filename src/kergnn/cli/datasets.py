"""``kergnn datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Show the statistics of this set, file or folder.")
    ] = None,
    data_mirror: Annotated[Path | None, typer.Option(help="Copies of the public sets.")] = None,
) -> None:
    """List the named data sets and where they would come from, or describe one."""
    from rich.console import Console
    from rich.table import Table

    from kergnn.data import CATALOG, default_recipe, load_graphs, where_available

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=name is None)
    if name is None:
        for column in ("name", "task", "from", "about"):
            table.add_column(column, no_wrap=column != "about")
        for entry in CATALOG.values():
            place = where_available(entry.name, data_mirror)
            table.add_row(entry.name, entry.task, place, entry.about)
    else:
        graphs = load_graphs(name, data_mirror)
        counts = graphs.y[graphs.y >= 0].bincount(minlength=graphs.num_classes).tolist()
        classes = zip(graphs.class_names, counts, strict=True)
        attributes = 0 if graphs.attributes is None else graphs.attributes.size(1)
        mean_degree = float(graphs.degree.float().mean()) if graphs.num_nodes else 0.0
        for key, value in {
            "name": graphs.name,
            "from": graphs.source,
            "task": graphs.task,
            "graphs": graphs.num_graphs,
            "nodes": f"{graphs.num_nodes} ({graphs.num_nodes / graphs.num_graphs:.1f} a graph)",
            "edges": f"{int(graphs.degree.sum()) // 2} (mean degree {mean_degree:.2f}, "
            f"largest {int(graphs.degree.max()) if graphs.num_nodes else 0})",
            "classes": ", ".join(f"{c}: {n}" for c, n in classes) or "none",
            "node labels": ", ".join(str(len(names)) for names in graphs.label_names) or "none",
            "attributes": attributes or "none",
            "default features": default_recipe(graphs),
            "fingerprint": graphs.fingerprint,
        }.items():
            table.add_row(key, str(value))
    Console(highlight=False, soft_wrap=True, markup=False).print(table)
