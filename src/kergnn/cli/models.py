"""``kergnn models``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


def models(
    name: Annotated[str | None, typer.Argument(help="Show its options and its search.")] = None,
) -> None:
    """List the models of train (networks only) and evaluate, and the kernels of KerGNN."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = 200  # in a pipe a row is a line
    if name is None:
        _list(console)
    else:
        _show(console, name)


def _list(console: Console) -> None:
    from rich.table import Table

    from kergnn.kernels import get_kernel, kernel_names
    from kergnn.models import model_info, model_names

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("model", "task", "paper", "about"):
        table.add_column(column)
    for info in map(model_info, model_names()):
        table.add_row(info.name, ", ".join(info.tasks), info.paper, info.summary)
    kernels = Table(box=None, padding=(0, 2, 0, 0))
    kernels.add_column("kernel")
    kernels.add_column("about")
    for name in sorted(kernel_names()):
        summary = (inspect.getdoc(get_kernel(name).function) or "").splitlines()[0]
        kernels.add_row(name, summary)
    console.print(table)
    console.print()
    console.print(kernels)


def _show(console: Console, name: str) -> None:
    from kergnn.evaluation import default_grid
    from kergnn.models import model_info, model_options

    info = model_info(name)
    console.print(f"{name}: {info.summary}")
    console.print(f"{info.paper}; classifies {' and '.join(task + 's' for task in info.tasks)}")
    options = model_options(name)
    if options:
        console.print("\nOptions of its own (--set options.NAME=VALUE) and their defaults:")
    for key, value in options.items():
        console.print(f"  {key} = {value}")
    console.print("\nThe search of kergnn evaluate (--grid):\n")
    console.print(default_grid("", name).read_text().strip())
