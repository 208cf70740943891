"""Classify molecules as scikit-learn does: cross-validation, a search over settings, a prediction.

MUTAG comes inside the grakel package. With RDKit (``pip install '.[chem]'``) SMILES strings
can be given instead of graphs: ``clf.fit(["CCO", "c1ccccc1", ...], y)``.
"""

import networkx as nx
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from kergnn import KerGNNClassifier
from kergnn.data import load_graphs, to_networkx


def read() -> tuple[list[nx.Graph], list[int]]:
    """Return the molecules as networkx graphs, with the label of every atom, and their classes."""
    molecules = to_networkx(load_graphs("MUTAG"))
    return molecules, [molecule.graph["y"] for molecule in molecules]


if __name__ == "__main__":
    molecules, y = read()
    train, test, y_train, y_test = train_test_split(
        molecules, y, test_size=0.2, stratify=y, random_state=0
    )
    clf = KerGNNClassifier(hidden_channels=16, epochs=15, random_state=0)
    scores = cross_val_score(clf, train, y_train, cv=3)
    print(
        f"cross-validation on the training part: {scores.mean():.1%} (deviation {scores.std():.1%})"
    )

    search = GridSearchCV(clf, {"num_layers": [1, 2]}, cv=3)
    search.fit(train, y_train)
    print(f"selected: {search.best_params_}")
    print(f"test accuracy: {search.score(test, y_test):.1%}")

    best = search.best_estimator_
    print(f"classes {best.classes_}, probabilities of the first: {best.predict_proba(test[:1])[0]}")
    adjacency, attributes = best.filters_[0]
    print(f"filters of the first layer: adjacency {adjacency.shape}, attributes {attributes.shape}")
