"""``kergnn models``."""

from __future__ import annotations

import inspect


def models() -> None:
    """List the models that can be trained, and the kernels of KerGNN."""
    from rich.console import Console
    from rich.table import Table

    from kergnn.kernels import get_kernel, kernel_names

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("model", "task", "paper", "about"):
        table.add_column(column)
    table.add_row(
        "kergnn",
        "graph, node",
        "Feng et al., AAAI 2022",
        "filters are small trainable graphs, compared with ego-graphs by a kernel",
    )
    kernels = Table(box=None, padding=(0, 2, 0, 0))
    kernels.add_column("kernel")
    kernels.add_column("about")
    for name in sorted(kernel_names()):
        summary = (inspect.getdoc(get_kernel(name).function) or "").splitlines()[0]
        kernels.add_row(name, summary)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(table)
    console.print()
    console.print(kernels)
