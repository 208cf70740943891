import multiprocessing
import signal
import subprocess
import sys
import threading

import pytest
import torch

from kergnn import EgoGraphs
from kergnn.engine import evaluate, threads
from kergnn.testing import random_filters, random_graph

KERNELS = ["rw", "rw-step", "drw"]


@pytest.fixture
def num_threads(monkeypatch):
    """Set the number of threads of torch, and let little work count as enough for all of them."""
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "_WORK_PER_THREAD", 1)
    yield torch.set_num_threads
    torch.set_num_threads(before)


def big_inputs(kernel):
    """Ten graphs of 150 nodes, 40 filters: five tiles and three blocks of filters."""
    parts = [random_graph(150, 0.05, seed=i, num_features=5) for i in range(10)]
    ego = EgoGraphs.cat(EgoGraphs.from_edge_index(e, 150, 1, 8) for _, e in parts)
    adjacency, attributes = random_filters(40, 4, num_features=5)
    tensors = {
        "x": torch.cat([x for x, _ in parts]),
        "adjacency": adjacency,
        "attributes": attributes,
    }
    if kernel == "drw":
        tensors["hop_weight"] = torch.rand(40, 2, 4, generator=torch.Generator().manual_seed(0))
    return ego, {k: t.float().requires_grad_() for k, t in tensors.items()}


def results(kernel, ego, tensors, num_steps=2):
    K = evaluate(kernel, ego=ego, num_steps=num_steps, engine="numba", **tensors)
    gradients = torch.autograd.grad(K.square().mean(), list(tensors.values()))
    return [K.detach(), *gradients]


def same_bits(a, b):
    return all(torch.equal(s, t) for s, t in zip(a, b, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_threads_give_one_bit_pattern_200_times(kernel, num_threads):
    num_threads(2)
    ego, tensors = big_inputs(kernel)
    K = evaluate(kernel, ego=ego, num_steps=2, engine="numba", **tensors)
    loss = K.square().mean()
    options = {"retain_graph": True}
    first = torch.autograd.grad(loss, list(tensors.values()), **options)
    for _ in range(200):
        again = torch.autograd.grad(loss, list(tensors.values()), **options)
        assert same_bits(first, again)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_number_of_threads_changes_no_bit(kernel, num_threads, monkeypatch):
    """The compiled part; torch's own matrix products are kept on one thread."""
    ego, tensors = big_inputs(kernel)
    num_threads(1)
    alone = results(kernel, ego, tensors, num_steps=3)
    for count in (2, 3, 7):
        monkeypatch.setattr(threads.torch, "get_num_threads", lambda count=count: count)
        assert same_bits(alone, results(kernel, ego, tensors, num_steps=3))


@pytest.mark.parametrize("openmp", [True, False])
def test_all_threads_take_part_and_their_errors_are_raised(openmp, num_threads, monkeypatch):
    if not openmp:
        monkeypatch.setattr(threads, "_openmp", lambda: None)
    elif threads._openmp() is None:
        pytest.skip("this torch has no GNU OpenMP")
    num_threads(3)
    barrier = threading.Barrier(3)
    threads.run(lambda: barrier.wait(timeout=60), work=100)  # returns only if three threads meet

    main = threading.get_ident()

    def fail_in_the_pool():
        barrier.wait(timeout=60)
        if threading.get_ident() != main:
            raise RuntimeError("not the main thread")

    with pytest.raises(RuntimeError, match="not the main thread"):
        threads.run(fail_in_the_pool, work=100)


def test_a_signal_is_not_lost(num_threads, capfd):
    """Raised as soon as the main thread runs Python again, perhaps before it can be caught."""
    num_threads(2)

    def alarm(number, frame):
        raise InterruptedError

    def work():
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        for _ in range(20_000):
            threads.run(lambda: None, work=100)

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for _ in range(20):
            with pytest.raises(InterruptedError):
                work()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert capfd.readouterr().err == ""


def test_little_work_stays_in_the_calling_thread():
    seen = []
    threads.run(lambda: seen.append(threading.get_ident()), work=10)
    assert seen == [threading.get_ident()]


def _in_child(queue, kernel, ego, tensors):
    torch.set_num_threads(1)  # as in workers of a DataLoader: OpenMP would wait forever here
    threads.torch.get_num_threads = lambda: 2
    queue.put([t.numpy() for t in results(kernel, ego, tensors)])


FORK = """
import os, torch
from kergnn import EgoGraphs
from kergnn.engine import evaluate
from kergnn.testing import random_filters, random_graph
x, edges = random_graph(400, 0.05)
ego = EgoGraphs.from_edge_index(edges, 400, 1, 8)
A, W = random_filters(40, 4, num_features=x.size(1))
torch.set_num_threads(2)
torch.rand(1000, 1000).exp()  # the threads are there, but compiled code was not used yet
child = os.fork()
if child == 0:
    torch.set_num_threads(1)  # as in workers of a DataLoader: torch itself would wait forever
    torch.get_num_threads = lambda: 2
    evaluate("rw", x, ego, A, W, 2, engine="numba")
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_forked_before_the_first_use_computes():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300)
    assert run.stdout == "0\n", run.stderr


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_computes_after_its_parent_did(num_threads):
    num_threads(2)
    ego, tensors = big_inputs("rw")
    parent = results("rw", ego, tensors)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, "rw", ego, tensors), daemon=True)
    child.start()
    arrays = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    for ours, theirs in zip(parent, arrays, strict=True):
        torch.testing.assert_close(torch.from_numpy(theirs), ours, rtol=1e-4, atol=1e-5)
