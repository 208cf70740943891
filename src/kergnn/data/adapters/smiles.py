"""Molecules, as SMILES strings or as molecules of RDKit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kergnn._checks import check_choice
from kergnn.data.adapters.values import Names, names_of
from kergnn.data.graphset import DataError, GraphSet
from kergnn.data.records import GraphRecord, objects, split

_LABELS: dict[str, Callable[[Any], Any]] = {
    "element": lambda atom: atom.GetSymbol(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "aromatic": lambda atom: int(atom.GetIsAromatic()),
    "hydrogens": lambda atom: atom.GetTotalNumHs(),
}


_WRITTEN = ("element", "charge", "hydrogens")


def is_molecule(item: Any) -> bool:
    """Return whether something is a molecule of RDKit, without a need for RDKit."""
    return type(item).__module__.startswith("rdkit.") and hasattr(item, "GetAtoms")


def read_molecules(molecules: Sequence[Any], node_labels: Names) -> list[GraphRecord]:
    """Read molecules: atoms are nodes, bonds are edges.

    Nodes have the label ``element`` or those that ``node_labels`` names of ``element``, ``charge``,
    ``aromatic`` and ``hydrogens`` (how many are bound). Hydrogens that SMILES does not write are no
    nodes. The kind of a bond is kept as the edge value ``bond``; the id of a graph is its SMILES,
    which also knows the stereochemistry.
    """
    names = ["element"] if node_labels is None else names_of(node_labels, "node_labels")
    for name in names:
        check_choice("node_labels of molecules", name, _LABELS)
    return [_record(m, _parsed(m, i), names) for i, m in enumerate(molecules)]


def to_smiles(graphs: GraphSet) -> list[str]:
    """Return the graphs as SMILES, written by RDKit in its canonical form.

    Needed are the labels ``element``, ``charge`` and ``hydrogens`` of nodes and the value ``bond``
    of edges: ``as_graphs(smiles, node_labels=["element", "charge", "hydrogens"])`` keeps all but
    stereochemistry and isotopes.
    """
    records = split(graphs)
    missing = [name for name in _WRITTEN if name not in graphs.label_columns]
    missing += [] if "bond" in graphs.edge_values or not graphs.edge_index.numel() else ["bond"]
    if missing:
        raise DataError(
            f"{graphs.name} has no {missing[0]!r}: SMILES are written of the labels "
            f"{', '.join(_WRITTEN)} and the edge value bond"
        )
    return [_written(record, f"graphs[{i}]") for i, record in enumerate(records)]


def _parsed(molecule: Any, position: int) -> Any:
    if not isinstance(molecule, str):
        return molecule
    chem = _rdkit()
    with chem.rdBase.BlockLogs():
        parsed = chem.MolFromSmiles(molecule)
    if parsed is None:
        raise DataError(f"graphs[{position}] is {molecule[:60]!r}: RDKit cannot read it as SMILES")
    return parsed


def _rdkit() -> Any:
    try:
        from rdkit import Chem
    except ImportError:
        raise ImportError("SMILES strings need RDKit: pip install rdkit") from None
    return Chem


def _record(given: Any, molecule: Any, names: list[str]) -> GraphRecord:
    atoms = list(molecule.GetAtoms())
    labels = {name: [str(_LABELS[name](atom)) for atom in atoms] for name in names}
    bonds = list(molecule.GetBonds())
    edges = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    kinds = objects([str(bond.GetBondType()) for bond in bonds])
    name = given if isinstance(given, str) else None
    return GraphRecord(len(atoms), edges, labels, edge_values={"bond": kinds}, id=name)


def _written(record: GraphRecord, where: str) -> str:
    chem = _rdkit()
    molecule = chem.RWMol()
    table = chem.GetPeriodicTable()
    for element, charge, hydrogens in zip(*(record.labels[n] for n in _WRITTEN), strict=True):
        if element not in {table.GetElementSymbol(n) for n in range(119)}:
            raise DataError(f"{where} has the element {element!r}, which does not exist")
        atom = chem.Atom(element)
        atom.SetFormalCharge(_count(charge, "charge", where))
        atom.SetNumExplicitHs(_count(hydrogens, "hydrogens", where))
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for (a, b), kind in zip(record.edges, record.edge_values.get("bond", ()), strict=True):
        a, b = int(a), int(b)
        if kind not in chem.BondType.names:
            raise DataError(f"{where} has the bond {kind!r}: it must be as 'SINGLE' or 'AROMATIC'")
        if a == b or molecule.GetBondBetweenAtoms(a, b):  # a loop, or given before
            continue
        molecule.AddBond(a, b, chem.BondType.names[kind])
        if kind == "AROMATIC":
            for atom in (a, b):
                molecule.GetAtomWithIdx(atom).SetIsAromatic(True)
    try:
        with chem.rdBase.BlockLogs():
            chem.SanitizeMol(molecule)
    except ValueError as error:
        raise DataError(f"{where} is no molecule: {error}") from None
    return str(chem.MolToSmiles(molecule))


def _count(text: str, name: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(f"{where} has the {name} {text!r}: it must be an integer") from None
