"""Molecules, as SMILES strings or as molecules of RDKit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kergnn._checks import check_choice
from kergnn.data.adapters.values import Names, names_of
from kergnn.data.graphset import DataError
from kergnn.data.records import GraphRecord

_LABELS: dict[str, Callable[[Any], Any]] = {
    "element": lambda atom: atom.GetSymbol(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "aromatic": lambda atom: int(atom.GetIsAromatic()),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
}


def is_molecule(item: Any) -> bool:
    """Return whether something is a molecule of RDKit, without a need for RDKit."""
    return type(item).__module__.startswith("rdkit.") and hasattr(item, "GetAtoms")


def read_molecules(molecules: Sequence[Any], node_labels: Names) -> list[GraphRecord]:
    """Read molecules: atoms are nodes, bonds are edges.

    Nodes have the label ``element`` or those that ``node_labels`` names of ``element``, ``charge``,
    ``aromatic`` and ``hydrogens`` (how many are bound). Hydrogens that SMILES does not write are no
    nodes; bonds lose their kind, and atoms and bonds their stereochemistry.
    """
    names = ["element"] if node_labels is None else names_of(node_labels, "node_labels")
    for name in names:
        check_choice("node_labels of molecules", name, _LABELS)
    return [_record(_parsed(m, i), names) for i, m in enumerate(molecules)]


def _parsed(molecule: Any, position: int) -> Any:
    if not isinstance(molecule, str):
        return molecule
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise ImportError("SMILES strings need RDKit: pip install 'kergnn[chem]'") from None
    with rdBase.BlockLogs():
        parsed = Chem.MolFromSmiles(molecule)
    if parsed is None:
        raise DataError(f"graphs[{position}] is {molecule[:60]!r}: RDKit cannot read it as SMILES")
    return parsed


def _record(molecule: Any, names: list[str]) -> GraphRecord:
    atoms = list(molecule.GetAtoms())
    labels = {name: [str(_LABELS[name](atom)) for atom in atoms] for name in names}
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    return GraphRecord(len(atoms), bonds, labels)
