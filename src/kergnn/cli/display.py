"""What a person sees of a finished run."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def show_results(results: dict[str, Any], run: str) -> None:
    """Print the small table at the end of a run."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    names = {"balanced_accuracy": "balanced accuracy", "macro_f1": "macro F1", "roc_auc": "ROC-AUC"}
    for name, value in results["test"].items():
        table.add_row(f"test {names.get(name, name)}", f"{100 * value:.1f} %")
    metric = results["metric"]
    score = f"{names.get(metric, metric)} {100 * results['validation'][metric]:.1f} %"
    chosen = f"{results['best_epoch']} of {results['epochs']} (validation {score})"
    table.add_row("kept epoch", chosen)
    seconds = f"{results['seconds_per_epoch']:.2f} s an epoch, {results['seconds']:.0f} s in all"
    table.add_row("time", seconds)
    table.add_row("run", run)
    Console(highlight=False, soft_wrap=True, markup=False).print(table)
