"""Speed and memory against the peers, as ratios measured in one run."""

from kergnn.bench.contenders import DEFAULT_DATASETS
from kergnn.bench.report import format_tables, plot
from kergnn.bench.run import run_bench

__all__ = ["DEFAULT_DATASETS", "format_tables", "plot", "run_bench"]
