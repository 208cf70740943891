"""The command line: each command parses its arguments and delegates."""

from kergnn.cli.app import main

__all__ = ["main"]
