"""The number of threads is what was asked for, and afterwards what it was."""

from threading import Barrier, Thread

import pytest
import torch
from threadpoolctl import threadpool_info

from kergnn._threads import use_threads


@pytest.fixture(autouse=True)
def _three_before():
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


def limits():
    return [pool["num_threads"] for pool in threadpool_info()]


def test_nested_and_after_an_error():
    before = limits()

    def interrupted():
        with use_threads(1):
            with use_threads(2), use_threads(None):
                assert torch.get_num_threads() == 2
            assert torch.get_num_threads() == 1
            assert set(limits()) <= {1}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.get_num_threads() == 3
    assert limits() == before


def test_those_who_came_first_may_leave_first():
    before = limits()
    come, leave = Barrier(2), Barrier(2)

    def first():
        with use_threads(1):
            come.wait()
            leave.wait()

    thread = Thread(target=first)
    thread.start()
    come.wait()
    with use_threads(2):
        leave.wait()
        thread.join()
    assert limits() == before
    with use_threads(1):
        pass
    assert limits() == before
