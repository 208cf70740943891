"""``kergnn models``."""

from __future__ import annotations

import inspect


def models() -> None:
    """List the models of train (networks only) and evaluate, and the kernels of KerGNN."""
    from rich.console import Console
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
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal:
        console.width = 200  # in a pipe a row is a line
    console.print(table)
    console.print()
    console.print(kernels)
