import pytest
import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from kergnn import EgoGraphs, KerGNN
from kergnn.explain import explain, explainable, filter_graphs
from kergnn.nn import WithWords, WordMap
from kergnn.testing import random_graph


def words_and_numbers(num_nodes=7, sizes=(4, 0, 9), seed=0):
    """Return two numbers and a word for each of the sizes, some of them none."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(num_nodes, 2, generator=generator)
    words = [torch.randint(size + 1, (num_nodes, 1), generator=generator) for size in sizes]
    return torch.cat([numbers, *words], dim=1)


def as_one_hot(x, sizes):
    """Return numbers and one column for each word of each size."""
    columns = [x[:, : -len(sizes)]]
    for r, size in enumerate(sizes):
        columns.append(one_hot(x[:, r - len(sizes)].long(), size + 1)[:, 1:].float())
    return torch.cat(columns, dim=1)


def test_words_are_the_linear_map_of_their_one_hot_vectors():
    sizes = (4, 0, 9)
    x, words = words_and_numbers(sizes=sizes), WordMap(5, 3, sizes)
    matrix = torch.cat([words.linear.weight, words.vectors[1:].T], dim=1)
    expected = as_one_hot(x, sizes) @ matrix.T + words.linear.bias
    torch.testing.assert_close(words(x), expected)
    got = torch.autograd.grad(words(x).pow(2).sum(), words.vectors)[0]
    expected = torch.autograd.grad(expected.pow(2).sum(), words.vectors)[0]
    torch.testing.assert_close(got, expected)


def test_no_word_adds_nothing_and_stays_so():
    words = WordMap(3, 4, (5, 5))
    x = torch.tensor([[2.0, 0.0, 0.0]])
    torch.testing.assert_close(words(x), words.linear(x[:, :1]))
    words(x).sum().backward()
    assert not words.vectors.grad.any()


def test_dropout_drops_words_and_numbers_and_keeps_their_mean():
    words = WordMap(3, 4, (2, 3), dropout=0.5)
    x = torch.tensor([[2.0, 1.0, 3.0]]).expand(20_000, 3)
    numbers, vectors = words.parts(x)[:, :1], words.parts(x)[:, 1:]
    assert set(numbers.unique().tolist()) == {0.0, 4.0}
    torch.testing.assert_close(vectors.mean(0), words.eval().parts(x[:1])[0, 1:], atol=0.02, rtol=0)
    one, other = (2 * words.vectors[row] for row in (1, 2 + 3))  # none, either, both
    combinations = torch.stack([0 * one, one, other, one + other])
    distance = (vectors[:, None] - combinations).abs().amax(2)
    assert (distance.amin(1) < 1e-5).all()
    assert (distance.argmin(1).bincount() > 4000).all()


@pytest.mark.parametrize("word", [-1.0, 5.0, 1.5])
def test_unknown_words_are_refused(word):
    with pytest.raises(ValueError, match=r"they must be whole numbers from 0 to \[4\]"):
        WordMap(2, 3, (4,))(torch.tensor([[1.0, word]]))


@pytest.mark.parametrize("vocabulary", [(), (3, 3)])
def test_there_must_be_words_and_numbers(vocabulary):
    with pytest.raises(ValueError, match="fewer than in_channels = 2"):
        WordMap(2, 3, vocabulary)
    with pytest.raises(ValueError, match="vocabulary is -1"):
        WordMap(2, 3, (-1,))


def kergnn(sizes, **options):
    torch.manual_seed(0)
    return KerGNN(2 + len(sizes), 4, 3, input_channels=6, vocabulary=sizes, **options)


def test_a_model_needs_an_input_map_for_words():
    with pytest.raises(ValueError, match="input_channels is None"):
        KerGNN(3, 4, 2, vocabulary=(5,))
    with pytest.raises(ValueError, match="input_channels is -1"):
        KerGNN(3, 4, 2, input_channels=-1)


def with_one_hot_words(net, sizes):
    """Return the same model as one with a column for each word."""
    width = 2 + sum(sizes)
    other = KerGNN(width, 4, 3, input_channels=6, readout=net.readout)
    words = net.input_map
    weight = torch.cat([words.linear.weight, words.vectors[1:].T], dim=1)
    rest = {k: v for k, v in net.state_dict().items() if not k.startswith("input_map.")}
    rest |= {"input_map.weight": weight, "input_map.bias": words.linear.bias}
    other.load_state_dict(rest)
    return other.eval()


@pytest.mark.parametrize("method", ["walks", "readout", "gradient", "occlusion"])
@pytest.mark.parametrize("readout", ["sum", "log", "mean"])
def test_shares_of_words_are_those_of_their_one_hot_vectors(method, readout):
    sizes = (4, 9)
    net = kergnn(sizes, readout=readout).eval()
    other = with_one_hot_words(net, sizes)
    x, (_, edge_index) = words_and_numbers(7, sizes), random_graph(7, 0.5, 1)
    found, expected = (
        explain(model, Data(x=features, edge_index=edge_index), target=1, method=method)
        for model, features in ((net, x), (other, as_one_hot(x, sizes)))
    )
    for key in ("node_contribution", "edge_contribution", "layer_contribution", "baseline"):
        torch.testing.assert_close(found[key], expected[key], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.prediction, net(x, edge_index))


def test_words_have_no_names_in_filters():
    with pytest.raises(ValueError, match="names must be None"):
        filter_graphs(kergnn((4, 9)), names=["a", "b", "c", "d"])


def test_explainers_take_words_whole():
    net, sizes = kergnn((4, 9)).eval(), (4, 9)
    x, (_, edge_index) = words_and_numbers(7, sizes), random_graph(7, 0.5, 1)
    torch.testing.assert_close(explainable(net)(x, edge_index), net(x, edge_index))
    with pytest.raises(ValueError, match="whole numbers"):
        explainable(net)(0.3 * x, edge_index)


def test_filters_start_from_features_without_dropout():
    x, (_, edge_index) = words_and_numbers(7, (4, 9)), random_graph(7, 0.5, 1)
    ego = EgoGraphs.from_edge_index(edge_index, 7)
    starts = []
    for input_dropout in (0.0, 0.5):
        net = kergnn((4, 9), filter_init="ego", input_dropout=input_dropout)
        torch.manual_seed(1)
        net.start_from(x, ego)
        starts.append(net.state_dict())
        assert net.input_map.training
    for name, tensor in starts[0].items():
        assert torch.equal(tensor, starts[1][name]), name


def test_a_network_of_numbers_takes_words():
    class Sum(torch.nn.Module):
        auxiliary_loss = 2.5

        def start_from(self, x, edge_index):
            self.began = x

        def forward(self, x, edge_index, batch, num_graphs):
            return x.sum(0, keepdim=True)

    words, x = WordMap(5, 3, (4, 0, 9), dropout=0.5).eval(), words_and_numbers()
    network = WithWords(words, Sum())
    torch.testing.assert_close(network(x, None, None, 1), words(x).sum(0, keepdim=True))
    assert network.auxiliary_loss == 2.5
    network.train().start_from(x, None)
    assert torch.equal(network.network.began, words.eval()(x))
    assert not network.network.began.requires_grad
    plain = WithWords(words, torch.nn.Linear(3, 2))
    assert plain.start_from is None
    assert plain.auxiliary_loss == 0
