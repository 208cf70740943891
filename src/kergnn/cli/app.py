"""The program ``kergnn``: its commands, and how errors are shown.

Commands import what they need when they are called: torch alone takes seconds to load, and help
and mistakes should not wait for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from kergnn import __version__
from kergnn.cli.bench import bench
from kergnn.cli.datasets import datasets
from kergnn.cli.evaluate import evaluate
from kergnn.cli.explain import explain
from kergnn.cli.models import models
from kergnn.cli.predict import predict
from kergnn.cli.reproduce import reproduce
from kergnn.cli.table import table
from kergnn.cli.train import train

app = typer.Typer(
    name="kergnn",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (train, predict, explain, evaluate, reproduce, table, datasets, models, bench):
    app.command()(command)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"kergnn {__version__}")
        raise typer.Exit


@app.callback()
def kergnn(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Classify graphs and nodes with filters that are graphs, and see why.

    kergnn train MUTAG            train on a named set, or on graphs of your own

    kergnn predict RUN INPUT      classes and probabilities for new graphs

    kergnn explain RUN            what filters learned and which nodes decided

    kergnn evaluate NCI1          ten folds, selection by validation; resumable

    kergnn reproduce MUTAG        train a stored fold again, compare every digit

    kergnn table                  stored results beside the published ones

    kergnn datasets [NAME]        what there is, and where it would come from

    kergnn models                 models and kernels

    kergnn bench                  speed and memory against the peers

    Errors are one line; the exit code is 0 on success, 2 for bad input, 1 for other failures.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        with _plain_warnings():
            code = app(arguments, prog_name="kergnn", standalone_mode=False)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if debug:
            raise
        return _fail(*_explain(error))
    return code if isinstance(code, int) else 0


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning as one line, once, without the line of code that gave it."""
    shown = set()

    def show(message: Warning | str, *_: object) -> None:
        line = " ".join(str(message).split())
        if line not in shown:
            shown.add(line)
            print(f"kergnn: warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _explain(error: Exception) -> tuple[str, int]:
    """Return a message and the exit code."""
    # Usage errors of the option parser know their message and their exit code.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return format_message(), getattr(error, "exit_code", 2)
    if isinstance(error, ValueError):
        return str(error), 2
    if isinstance(error, FloatingPointError):
        return str(error), 1
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: no such file or folder", 2
    if isinstance(error, OSError):
        return f"{error.filename or 'system'}: {error.strerror or error}", 1
    return f"{type(error).__name__}: {error} (--debug shows where)", 1


def _fail(message: str, code: int) -> int:
    print(f"kergnn: {' '.join(message.split())}", file=sys.stderr)
    return code
