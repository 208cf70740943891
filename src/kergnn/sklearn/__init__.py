"""KerGNN for scikit-learn: classifiers of graphs and of nodes, and the kernel between graphs."""

from kergnn.sklearn.classifier import KerGNNClassifier
from kergnn.sklearn.kernel import RandomWalkKernel
from kergnn.sklearn.nodes import KerGNNNodeClassifier

__all__ = ["KerGNNClassifier", "KerGNNNodeClassifier", "RandomWalkKernel"]
