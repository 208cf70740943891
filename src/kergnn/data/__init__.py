"""Data sets, feature recipes, splits, and the cache of ego-graphs."""

from kergnn.data.adapters import (
    as_graphs,
    to_adjacency,
    to_grakel,
    to_networkx,
    to_pyg,
    to_smiles,
)
from kergnn.data.catalog import CATALOG, load_graphs, mirror_dir, where_available
from kergnn.data.features import RECIPES, Features, default_recipe
from kergnn.data.graphset import DataError, GraphSet, Task
from kergnn.data.jsonl import read_jsonl
from kergnn.data.motifs import ba_2motifs, ground_truth, hexagons, planted
from kergnn.data.splits import NUM_SPLITS, Split, draw_split, get_split
from kergnn.data.store import cached_ego_graphs
from kergnn.data.tu import read_tu_archive, read_tu_folder

__all__ = [
    "CATALOG",
    "NUM_SPLITS",
    "RECIPES",
    "DataError",
    "Features",
    "GraphSet",
    "Split",
    "Task",
    "as_graphs",
    "ba_2motifs",
    "cached_ego_graphs",
    "default_recipe",
    "draw_split",
    "get_split",
    "ground_truth",
    "hexagons",
    "load_graphs",
    "mirror_dir",
    "planted",
    "read_jsonl",
    "read_tu_archive",
    "read_tu_folder",
    "to_adjacency",
    "to_grakel",
    "to_networkx",
    "to_pyg",
    "to_smiles",
    "where_available",
]
