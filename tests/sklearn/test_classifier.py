import pickle
import pickletools

import joblib
import networkx as nx
import numpy as np
import pytest
import torch
from joblib import parallel_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kergnn.sklearn.estimator as estimator
import kergnn.training
from kergnn import KerGNN, KerGNNClassifier, KerGNNNodeClassifier, as_graphs


def rings_and_trees(count=40, seed=0):
    """Graphs of the same sizes that do, or do not, hold a triangle."""
    random = np.random.default_rng(seed)
    graphs, y = [], []
    for i in range(count):
        n = int(random.integers(6, 10))
        graph = nx.random_labeled_tree(n, seed=int(random.integers(1000)))
        if i % 2:
            graph = nx.cycle_graph(3)
            nx.add_path(graph, range(2, n))
        graphs.append(graph)
        y.append("ring" if i % 2 else "tree")
    return graphs, y


def small(**parameters):
    defaults = {"hidden_channels": 8, "num_layers": 1, "epochs": 15, "random_state": 0}
    return KerGNNClassifier(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def fitted():
    graphs, y = rings_and_trees()
    return small(epochs=40).fit(graphs, y)


def test_learns_and_predicts(fitted):
    graphs, y = rings_and_trees(seed=1)
    assert fitted.classes_.tolist() == ["ring", "tree"]
    assert fitted.score(graphs, y) >= 0.95
    probabilities = fitted.predict_proba(graphs)
    assert probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(fitted.predict_log_proba(graphs), np.log(probabilities))
    assert (fitted.predict(graphs) == fitted.classes_[probabilities.argmax(1)]).all()
    assert fitted.predict(graphs[0]).shape == (1,)  # one graph, not in a list
    assert fitted.predict(as_graphs(graphs)).tolist() == fitted.predict(graphs).tolist()


def test_attributes_after_fit(fitted):
    assert fitted.n_features_in_ == 1
    assert fitted.features_.names == ["degree"]
    assert len(fitted.history_) == fitted.n_iter_ >= fitted.best_epoch_ >= 1
    (layer,) = fitted.filters_
    assert layer.adjacency.shape == (8, 6, 6)
    assert layer.attributes.shape == (8, 6, 1)
    assert (layer.adjacency == layer.adjacency.transpose(0, 2, 1)).all()


def test_same_seed_same_model():
    graphs, y = rings_and_trees(20)
    state = torch.get_rng_state()
    first, second, other = (small(epochs=3, random_state=s).fit(graphs, y) for s in (5, 5, 6))
    assert (first.predict_proba(graphs) == second.predict_proba(graphs)).all()
    assert (first.predict_proba(graphs) != other.predict_proba(graphs)).any()
    assert torch.equal(state, torch.get_rng_state())  # the caller's randomness is left alone


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, 1), (np.int64(2), 2), (-1, joblib.cpu_count()), (-99, 1)]
)
def test_threads_are_those_of_n_jobs(n_jobs, threads, monkeypatch):
    """In all that is done: building ego-graphs, training, predicting, explaining."""
    graphs, y = rings_and_trees(20)
    seen = set()
    for owner, name in ((estimator, "_ego_graphs"), (KerGNN, "node_features")):
        method = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *a, f=method: (seen.add(torch.get_num_threads()), f(*a))[1]
        )
    torch.set_num_threads(3)
    try:
        clf = small(epochs=1, n_jobs=n_jobs)
        with parallel_config("threading", n_jobs=4):  # which is about other jobs
            clf.fit(graphs, y).predict(graphs)
        clf.transform(graphs)
        clf.explain(graphs[0])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)
    assert seen == {threads}


@pytest.mark.parametrize("n_jobs", [0, 2.0, "2", True])
def test_a_number_of_jobs_that_is_none(n_jobs):
    with pytest.raises(ValueError, match=f"n_jobs is {n_jobs!r}: it must be None"):
        small(n_jobs=n_jobs).fit(*rings_and_trees(10))


def test_predictions_do_not_depend_on_the_other_graphs(fitted):
    graphs, _ = rings_and_trees(10, seed=2)
    alone = np.concatenate([fitted.predict_proba([graph]) for graph in graphs])
    np.testing.assert_allclose(fitted.predict_proba(graphs), alone, atol=1e-5)


def test_clone_and_parameters(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")
    assert copy.set_params(num_layers=3).num_layers == 3
    with pytest.raises(NotFittedError):
        copy.predict(nx.path_graph(3))
    with pytest.raises(NotFittedError):
        _ = copy.filters_
    with pytest.raises(ValueError, match="hidden_channels is 0: it must be an integer of at least"):
        clone(fitted).set_params(hidden_channels=0).fit(*rings_and_trees(10))
    with pytest.raises(ValueError, match=r"validation_fraction is 0\.7"):
        small(validation_fraction=0.7).fit(*rings_and_trees(10))


def test_numpy_parameters():
    graphs, y = rings_and_trees(10)
    clf = small(hidden_channels=np.int64(4), learning_rate=np.float32(0.01), epochs=np.int32(2))
    assert clf.fit(graphs, y).model_.convs[0].out_channels == 4


def test_pickle_holds_no_tensors(fitted):
    graphs, _ = rings_and_trees(seed=1)
    content = pickle.dumps(fitted)
    strings = {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}
    assert not [s for s in strings if s.split(".")[0] in ("torch", "torch_geometric")]
    again = pickle.loads(content)
    assert (again.predict_proba(graphs) == fitted.predict_proba(graphs)).all()
    assert again.features_ == fitted.features_
    assert again.config_ == fitted.config_
    assert pickle.loads(pickle.dumps(small())).get_params() == small().get_params()


def test_warm_start_goes_on():
    graphs, y = rings_and_trees()
    clf = small(epochs=5, warm_start=True).fit(graphs, y)
    before = clf.history_[clf.best_epoch_ - 1]["train_loss"]
    clf.fit(graphs, y)
    assert clf.history_[0]["train_loss"] < before * 1.2
    cold = small(epochs=5).fit(graphs, y)
    assert clf.history_[-1]["train_loss"] < cold.history_[-1]["train_loss"]
    with pytest.raises(ValueError, match="the classes must be those of the last fit"):
        clf.fit(graphs, [1, 2] * 20)
    with pytest.raises(ValueError, match="has another shape"):
        clf.set_params(hidden_channels=9).fit(graphs, y)


def test_interrupt_keeps_the_best_model(monkeypatch):
    graphs, y = rings_and_trees()
    epoch = kergnn.training.Trainer._epoch

    def interrupted(trainer):
        if trainer.state.epoch == 4:
            with torch.no_grad():  # in the middle of an epoch
                trainer.model.head[1].weight.zero_()
            raise KeyboardInterrupt
        epoch(trainer)

    monkeypatch.setattr(kergnn.training.Trainer, "_epoch", interrupted)
    clf = small()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(graphs, y)
    assert clf.n_iter_ == 4
    monkeypatch.undo()
    expected = small(epochs=4).fit(graphs, y)
    assert (clf.predict_proba(graphs) == expected.predict_proba(graphs)).all()


def test_early_stopping_looks_at_graphs_that_were_held_out():
    clf = small(validation_fraction=0.25)
    codes = np.array([0] * 20 + [1] * 11 + [2])
    train, validation = (part.numpy() for part in clf._split(codes, seed=0))
    assert sorted([*train, *validation]) == list(range(32))
    assert len(validation) == 8
    assert np.bincount(codes[validation]).tolist() == [5, 3]  # and the only one of class 2 stays
    whole = small(early_stopping=False)._split(codes, seed=0)
    assert [len(part) for part in whole] == [32, 32]
    graphs, y = rings_and_trees(20)
    assert small(epochs=30, patience=2, learning_rate=1e-9).fit(graphs, y).n_iter_ < 30


def test_the_last_epoch_is_kept_on_demand():
    graphs, y = rings_and_trees(20)
    clf = small(epochs=5, patience=1, learning_rate=1e-9, keep_epoch="last").fit(graphs, y)
    assert clf.best_epoch_ == clf.n_iter_ == 5


def test_few_graphs_are_enough():
    graphs, y = rings_and_trees(4)
    assert set(small(epochs=2).fit(graphs, y).predict(graphs)) <= {"ring", "tree"}
    assert small(epochs=2).fit(graphs[:2], y[:2]).predict(graphs).shape == (4,)


def test_verbose_shows_progress(capsys):
    graphs, y = rings_and_trees(10)
    small(epochs=2).fit(graphs, y)
    assert capsys.readouterr().out == ""
    small(epochs=2, verbose=True).fit(graphs, y)
    assert "epoch 1/2" in capsys.readouterr().out


def test_node_attributes_are_those_of_fit():
    graphs, y = rings_and_trees(20)
    for graph, name in zip(graphs, y, strict=True):
        for node in graph:
            graph.nodes[node].update(hint=float(name == "ring"), kind="a" if node else "b")
    clf = small(epochs=2).fit(graphs, y)
    assert clf.features_.names == ["a", "b", "hint"]
    new = nx.path_graph(3)
    for node in new:
        new.nodes[node].update(hint=1, kind="a", other="only here")
    new.nodes[0]["more"] = 1
    assert clf.predict_proba([new]).shape == (1, 2)
    alone, among = clf.predict_proba([nx.Graph()]), clf.predict_proba([nx.Graph(), new])
    np.testing.assert_allclose(alone[0], among[0], rtol=1e-6)
    new.nodes[1]["kind"] = "c"
    with pytest.warns(UserWarning, match="has node label 'c', which the model does not know"):
        clf.predict([new])
    del new.nodes[1]["hint"]
    with pytest.raises(ValueError, match="node 1 has no 'hint'"):
        clf.predict([new])
    assert small(epochs=1, node_labels="kind").fit(graphs, y).features_.names == ["a", "b"]


def test_errors_in_plain_words():
    graphs, y = rings_and_trees(10)
    with pytest.raises(ValueError, match=r"a table of shape \(10, 4\): rows of features are not"):
        small().fit(np.zeros((10, 4)), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small().fit(graphs, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        small().fit(graphs, None)
    with pytest.raises(ValueError, match="Unknown label type"):
        small().fit(graphs, np.linspace(0, 1, 10))
    with pytest.raises(ValueError, match=r"y\[9\] is None: every graph needs a class"):
        small().fit(graphs, [*y[:-1], None])
    for mixed in ([*y[:-1], 1], np.array([*y[:-1], 1], dtype=object)):
        with pytest.raises(ValueError, match="y has 'tree' and 1: classes must be all strings or"):
            small().fit(graphs, mixed)
    with pytest.raises(ValueError, match="y has only one class, tree: at least 2 classes"):
        small().fit(graphs, ["tree"] * 10)
    with pytest.raises(ValueError, match="kernel is 'rv'"):
        small(kernel="rv").fit(graphs, y)


def test_cross_validation_and_grid_search():
    graphs, y = rings_and_trees()
    scores = cross_val_score(small(), graphs, y, cv=2, error_score="raise")
    assert scores.min() > 0.8
    assert cross_val_score(small(), as_graphs(graphs), y, cv=2).tolist() == scores.tolist()
    grid = {"num_steps": [0, 2], "hidden_channels": np.array([4])}
    search = GridSearchCV(small(epochs=20), grid, cv=2, error_score="raise").fit(graphs, y)
    assert search.best_params_["num_steps"] == 2  # a walk of length 0 sees no triangle
    assert search.best_estimator_.predict(graphs).shape == (40,)


def test_calibration():
    graphs, y = rings_and_trees()
    calibrated = CalibratedClassifierCV(small(), cv=2, method="sigmoid").fit(graphs, y)
    assert calibrated.predict_proba(graphs).shape == (40, 2)
    assert calibrated.score(graphs, y) > 0.8


def test_transform_stands_before_another_estimator(fitted):
    graphs, y = rings_and_trees()
    embedding = fitted.transform(graphs)
    assert embedding.shape == (40, 9) == (40, len(fitted.get_feature_names_out()))
    # The head makes the probabilities of the embedding.
    with torch.no_grad():
        logits = fitted.model_.head(torch.from_numpy(embedding))
    np.testing.assert_allclose(logits.softmax(1), fitted.predict_proba(graphs), atol=1e-6)
    pipeline = make_pipeline(small(epochs=20), StandardScaler(), LogisticRegression())
    assert pipeline.fit(graphs, y).score(*rings_and_trees(seed=3)) > 0.9


def test_explanations(fitted):
    pytest.importorskip("kergnn.explain", reason="explanations are not here yet")
    graphs, _ = rings_and_trees(4, seed=5)
    for graph, predicted in zip(graphs, fitted.predict(graphs), strict=True):
        explanation = fitted.explain(graph)
        assert fitted.classes_[int(explanation.target)] == predicted
        assert explanation.node_mask.size(0) == len(graph)
    assert int(fitted.explain(graphs[0], target="tree").target) == 1
    with pytest.raises(ValueError, match="target is 'x': it must be one of 'ring', 'tree'"):
        fitted.explain(graphs[0], target="x")
    with pytest.raises(ValueError, match="graph holds 2 graphs: it must be one"):
        fitted.explain(graphs[:2])
    assert fitted.plot_filters(most=2) is not None


def test_node_classifier():
    graph = nx.barbell_graph(12, 0)
    nx.add_path(graph, range(23, 40))
    y = np.array(["clique" if node < 24 else "path" for node in graph], dtype=object)
    hidden = y.copy()
    hidden[::3] = None
    clf = KerGNNNodeClassifier(hidden_channels=8, epochs=25, random_state=0).fit(graph, hidden)
    assert clf.classes_.tolist() == ["clique", "path"]
    assert clf.predict(graph).shape == (40,)
    test = np.array([value if not i % 3 else None for i, value in enumerate(y)], dtype=object)
    assert clf.score(graph, test) > 0.9
    assert clf.transform(graph).shape[0] == 40
    names = nx.relabel_nodes(graph, {node: f"n{node}" for node in graph})
    by_name = {f"n{node}": value for node, value in zip(graph, hidden, strict=True) if value}
    again = clone(clf).fit(names, by_name)
    assert (again.predict_proba(names) == clf.predict_proba(graph)).all()
    assert (pickle.loads(pickle.dumps(clf)).predict(graph) == clf.predict(graph)).all()
    with pytest.raises(ValueError, match="a class, or None, for each of the 40 nodes"):
        clf.fit(graph, y[:5])
    with pytest.raises(ValueError, match="for 'no', which is not a node"):
        clf.fit(graph, {"no": 1})
    with pytest.raises(ValueError, match="y has no class"):
        clf.fit(graph, [None] * 40)
    with pytest.raises(ValueError, match="y has 'x' and 1: classes must be all strings or all num"):
        clf.fit(graph, [1, "x", None, 1] * 10)
