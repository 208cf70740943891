import dataclasses
import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from types import SimpleNamespace

import pytest

from kergnn.config import ConfigError
from kergnn.data import get_split, load_graphs
from kergnn.evaluation import (
    Limits,
    ResultStore,
    SearchSpace,
    evaluate,
    make_executor,
    make_plan,
)
from kergnn.evaluation.executors import Outcome, SerialExecutor
from kergnn.evaluation.executors.processes import ProcessExecutor, _Worker


class Counting(SerialExecutor):
    """Counts trials, or refuses to run any."""

    def __init__(self, fail=False, limits=None):
        super().__init__()
        self.trials, self.fail, self.limits = [], fail, limits or Limits(seconds=15)

    def wait(self):
        self.trials.append(self._queue[0])
        assert not self.fail, "a trial ran"
        return super().wait()


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "store")


def test_worker_processes_give_the_same_records_as_one_process(small_plan, tmp_path, contents):
    plan = small_plan()
    found = []
    for name, workers in (("serial", 1), ("processes", 2)):
        folder = tmp_path / name
        record = evaluate(plan, ResultStore(folder), make_executor(name, workers))
        assert record["folds_done"] == 2
        found.append(contents(folder))
    assert found[0] == found[1]
    assert len(found[0]) == 2 * (3 + 2) + 1


def test_the_same_command_again_runs_nothing(small_plan, store, contents):
    first = evaluate(small_plan(), store, Counting())
    again = Counting()
    assert evaluate(small_plan(), store, again)["folds"] == first["folds"]
    assert again.trials == []


def test_a_grid_can_grow_and_only_new_trials_run(small_plan, store):
    evaluate(small_plan(folds=1, num_layers=[1, 2]), store, Counting())
    more = Counting()
    evaluate(small_plan(folds=1), store, more)
    selection = [t.config.num_layers for t in more.trials if not t.assess]
    assert selection == [3]


def test_folds_can_be_added_and_fewer_folds_lose_none(small_plan, store):
    evaluate(small_plan(folds=1), store, Counting())
    more = Counting()
    assert evaluate(small_plan(folds=2), store, more)["folds_done"] == 2
    assert {t.config.fold for t in more.trials} == {1}
    assert evaluate(small_plan(folds=1), store, Counting())["folds_done"] == 2


def test_a_crashing_configuration_is_tried_twice_and_recorded(small_plan, store):
    plan = small_plan(folds=1, num_layers=1, learning_rate=[0.01, 1e30])
    counting = Counting()
    record = evaluate(plan, store, counting)
    bad = [t.config.learning_rate for t in counting.trials if t.config.learning_rate > 1]
    assert len(bad) == 2
    assert (record["folds_done"], record["trials_failed"]) == (1, 1)
    (key,) = record["folds"][0]["failed"]
    failed = store.trial("MUTAG", key)
    assert failed["status"] == "failed"
    assert "training diverged in epoch 1" in failed["error"]
    assert "Traceback" in failed["traceback"]

    again = Counting()
    evaluate(plan, store, again)
    assert again.trials == []
    evaluate(plan, store, again, retry_failed=True)
    assert [t.key for t in again.trials] == [key, key]


def test_a_trial_that_fails_once_counts(small_plan, store):
    class Flaky(Counting):
        def wait(self):
            outcome = super().wait()
            return Outcome(outcome.trial, None, "bad luck") if len(self.trials) == 1 else outcome

    record = evaluate(small_plan(folds=1), store, Flaky())
    assert (record["folds_done"], record["trials_failed"]) == (1, 0)


def test_a_worker_that_dies_harms_only_its_trial(small_plan, store, monkeypatch):
    """The worker of the first trial is killed: it is replaced and the trial runs again."""
    executor = make_executor("processes", 2)
    killed = []

    class Killing:
        workers, threads, limits = 2, 1, Limits()

        def __enter__(self):
            executor.start()
            return self

        def __exit__(self, *_):
            executor.stop()
            assert executor._pool == []

        def submit(self, trial):
            executor.submit(trial)
            if not killed:
                killed.append(executor._pool[0].process.pid)
                os.kill(killed[0], signal.SIGKILL)

        def wait(self):
            outcome = executor.wait()
            if outcome.record is None:
                killed.append(outcome.error)
            return outcome

    record = evaluate(small_plan(folds=1), store, Killing())
    assert killed[1:] == ["the worker process was ended by SIGKILL"]
    assert (record["folds_done"], record["trials_failed"]) == (1, 0)


def test_a_trial_that_another_process_works_on_is_waited_for(small_plan, store, tmp_path):
    """The lock is held by another process until it has written the record."""
    plan = small_plan(folds=1)
    evaluate(plan, ResultStore(tmp_path / "other"), Counting())
    key = plan.folds[0].trial(plan.configs[0], plan.seed).key
    code = (
        "import sys, shutil; from pathlib import Path;"
        "from kergnn.evaluation.store import ResultStore;"
        "store = ResultStore(Path(sys.argv[1])); print(store.locks.claim(sys.argv[2]), flush=True);"
        "sys.stdin.readline();"
        "store.add_trial(ResultStore(Path(sys.argv[3])).trial('MUTAG', sys.argv[2]))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    command += [str(store.folder), key, str(tmp_path / "other")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"True\n"
        counting = Counting()
        done = threading.Timer(1, lambda: other.stdin.write(b"\n") and other.stdin.flush())
        done.start()
        record = evaluate(plan, store, counting)
        done.join()
    assert key not in {t.key for t in counting.trials}
    assert len(counting.trials) == 4
    assert record["folds_done"] == 1


def test_folds_of_other_splits_stay_in_their_own_evaluation(small_plan, store):
    plan = small_plan(folds=1)
    evaluate(dataclasses.replace(plan, splits="others"), store, Counting())
    assert evaluate(small_plan(folds=2), store, Counting())["folds_done"] == 2
    assert sorted(r["folds_done"] for r in store.evaluations()) == [1, 2]


def test_folds_with_the_same_split_share_their_trials(small_plan, store, monkeypatch):
    plan = small_plan(folds=1)
    split = get_split(load_graphs("MUTAG"), 0)
    monkeypatch.setattr("kergnn.evaluation.trial.find_split", lambda *_: split)
    twin = dataclasses.replace(plan.folds[0], number=1)
    counting = Counting()
    twice = dataclasses.replace(plan, folds=(plan.folds[0], twin))
    assert evaluate(twice, store, counting)["folds_done"] == 2
    assert len(counting.trials) == 5


def test_a_repaired_fold_is_not_broken_by_a_slower_process(small_plan, store):
    """Fold 0 fails here, is repaired by another call, and then fold 1 is finished here."""
    other, repaired = ResultStore(store.folder / "." / "."), []

    class Unlucky(Counting):
        def wait(self):
            outcome = super().wait()
            if outcome.trial.config.fold == 0 and outcome.trial.assess:
                return Outcome(outcome.trial, None, "bad luck")
            return outcome

        def submit(self, trial):
            if trial.config.fold == 1 and trial.assess and not repaired:
                again = evaluate(small_plan(folds=1), other, Counting(), retry_failed=True)
                repaired.append(again["folds_done"])
            super().submit(trial)

    record = evaluate(small_plan(folds=2), store, Unlucky())
    assert repaired == [1]
    assert (record["folds_done"], record["folds_failed"]) == (2, 0)


def test_what_was_measured_is_of_all_folds(small_plan, store):
    both = evaluate(small_plan(folds=2), store, Counting())["measured"]
    trials = [json.loads(path.read_text()) for path in store.folder.glob("trials/*/*.json")]
    total = sum(trial["measured"]["seconds"] for trial in trials)
    assert both["seconds_of_all_trainings"] == pytest.approx(total, abs=0.1)
    assert evaluate(small_plan(folds=1), store, Counting())["measured"] == both


def test_a_worker_that_died_idle_is_replaced(small_plan):
    plan = small_plan(folds=1)
    with make_executor("processes", 1) as executor:
        executor.submit(plan.folds[0].trial(plan.configs[0], 0))
        assert executor.wait().record["status"] == "done"
        process = executor._pool[0].process
        process.kill()
        process.join()
        executor.submit(plan.folds[0].trial(plan.configs[1], 0))
        assert executor.wait().record["status"] == "done"


def test_a_script_without_a_guard_is_told(tmp_path):
    (tmp_path / "script.py").write_text(
        "from pathlib import Path\n"
        "from kergnn.evaluation import *\n"
        "space = SearchSpace.from_values({'epochs': 1, 'hidden_channels': 4})\n"
        "plan = make_plan('MUTAG', space, folds=1, repeats=1)\n"
        "record = evaluate(plan, ResultStore(Path('store')), make_executor('processes', 2))\n"
        "print(record['trials_failed'])\n"
    )
    command = [sys.executable, "-W", "ignore", "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "below `if __name__ == '__main__':`" in ended.stderr
    assert ended.stdout.strip() == "1"


def test_a_full_disk_stops_with_a_message_and_loses_nothing(small_plan, store, monkeypatch):
    make = tempfile.mkstemp
    made = []

    def full(dir, prefix):
        if "trials" in str(dir):
            made.append(prefix)
        if len(made) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(dir=dir, prefix=prefix)

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        evaluate(small_plan(folds=1), store, Counting())
    assert caught.value.filename.endswith(".json")
    rest = Counting()
    assert evaluate(small_plan(folds=1), store, rest)["folds_done"] == 1
    assert len(rest.trials) == 3


def test_a_trial_beyond_its_limits_is_ended_and_recorded(small_plan, store):
    """The long ones are stopped, the short one is selected; more time makes them run again."""
    plan = small_plan(folds=1, repeats=1, num_layers=1, patience=10**6, epochs=[2, 10**6])
    executor = make_executor("processes", 2, limits=Limits(seconds=15))
    record = evaluate(plan, store, executor)
    assert (record["folds_done"], record["trials_out_of_resources"]) == (1, 1)
    assert record["trials_failed"] == 0
    ((key, status),) = record["folds"][0]["failed"].items()
    assert status == "oor"
    trial = store.trial("MUTAG", key)
    assert trial["error"] == "out of resources: more than 15 s"
    assert 15 <= trial["reached"]["seconds"] < 25
    assert trial["reached"]["memory"] > 10**7
    assert evaluate(plan, store, Counting(fail=True))["folds_done"] == 1
    with pytest.raises(AssertionError, match="a trial ran"):
        evaluate(plan, store, Counting(fail=True, limits=Limits(seconds=16)))


def test_memory_is_limited_too(small_plan, store):
    executor = make_executor("processes", 1, limits=Limits(memory=10**7))
    record = evaluate(small_plan(folds=1, repeats=1, num_layers=[1, 2]), store, executor)
    assert (record["folds_failed"], record["trials_out_of_resources"]) == (1, 2)


@pytest.mark.parametrize(("told", "begun"), [("Gram: 3 %", 1), ("Gram: 100 %", 3), ("", 3)])
def test_a_gram_matrix_that_is_too_much_is_tried_once(told, begun, monkeypatch):
    """Prices and folds share it; a machine that is too slow tells nothing of other prices."""
    space = SearchSpace.from_values({"options": {"C": [0.1, 1.0], "scale": ["degree", "uniform"]}})
    plan = make_plan("MUTAG", space, model="gntk", folds=2, repeats=1)
    cheap, other, dear, _ = (plan.folds[0].trial(config, seed=0) for config in plan.configs)
    elsewhere = plan.folds[1].trial(plan.configs[2], seed=1)
    assert cheap.gram_key == dear.gram_key == elsewhere.gram_key != other.gram_key
    executor = ProcessExecutor(limits=Limits(seconds=1))
    started = []

    def worker():
        process = SimpleNamespace(pid=os.getpid(), kill=list, join=list, is_alive=lambda: True)
        connection = SimpleNamespace(send=lambda trial: started.append(trial), close=list)
        executor._pool.append(_Worker(process, connection))
        return executor._pool[-1]

    monkeypatch.setattr(executor, "_new_worker", worker)
    executor.start()
    for trial in (cheap, dear, elsewhere):
        executor.submit(trial)
        if started and started[-1] is trial:
            busy = executor._pool[-1]
            busy.started, busy.told = 0.0, told
            outcome = executor._end(busy, "out of resources: more than 1 s")
        else:
            outcome = executor.wait()
        assert (outcome.trial, outcome.record) == (trial, None)
        assert outcome.error == "out of resources: more than 1 s"
    assert len(started) == begun
    executor.submit(other)
    assert started[-1] is other


def test_networks_and_fitted_kernels_share_no_gram_matrix(small_plan):
    assert small_plan().folds[0].trial(small_plan().configs[0], seed=0).gram_key is None
    space = SearchSpace.from_values({"options": {"path_size": 3}})
    plan = make_plan("MUTAG", space, model="gckn-unsupervised", folds=2, repeats=1)
    first, second = (fold.trial(plan.configs[0], seed=0).gram_key for fold in plan.folds)
    assert first != second


def test_executors_that_cannot_be_are_refused():
    for arguments, message in (
        (("luck",), "executor is 'luck'"),
        (("serial", 2), "with executor .serial. it must be 1"),
        (("processes", 0), "workers is 0"),
        (("processes", 1, None, 0), "threads is 0"),
        (("serial", 1, None, 1, None, Limits(seconds=1)), "limits of a trial need 'processes'"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_executor(*arguments)


def command(store, *more):
    code = "import sys; from kergnn.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["evaluate", "MUTAG", "--grid", "grid.toml", "--folds", "3", "--repeats", "2"]
    return [sys.executable, "-W", "ignore", "-c", code, *arguments, "--store", store, *more]


def test_twenty_kills_change_nothing(tmp_path, contents):
    """SIGKILL at random moments; the same command goes on, and no finished trial runs again."""
    (tmp_path / "grid.toml").write_text("hidden_channels = 4\nnum_layers = [1, 2, 3]\nepochs = 3")
    subprocess.run(command("whole", "--quiet"), cwd=tmp_path, check=True, capture_output=True)
    moments = random.Random(0)
    finished, interrupted = {}, 0
    for _ in range(20):
        with subprocess.Popen(command("killed"), cwd=tmp_path, stdout=subprocess.PIPE) as process:
            process.stdout.readline()  # it has loaded everything and begins
            try:
                process.wait(timeout=moments.uniform(0, 0.8))
            except subprocess.TimeoutExpired:
                process.kill()
                interrupted += 1
        for path in (tmp_path / "killed" / "trials").rglob("*.json"):
            text = path.read_text()
            assert finished.setdefault(path, text) == text
    assert interrupted >= 15
    subprocess.run(command("killed", "--quiet"), cwd=tmp_path, check=True, capture_output=True)
    for path, text in finished.items():
        assert path.read_text() == text
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert len(contents(tmp_path / "whole")) == 3 * 5 + 1
    tables = [
        subprocess.run(
            [*command(name)[:5], "table", "--store", name], cwd=tmp_path, capture_output=True
        ).stdout
        for name in ("killed", "whole")
    ]
    assert tables[0] == tables[1]
    assert b"kergnn" in tables[0]


def test_killing_the_parent_ends_its_workers(tmp_path):
    (tmp_path / "grid.toml").write_text("hidden_channels = 4\nnum_layers = [1, 2]\nepochs = 2000")
    process = subprocess.Popen(
        command("store", "--workers", "2", "--set", "patience=2000"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        process.stdout.readline()
        process.stdout.readline()  # both workers have been started
        group = children(process.pid)
        assert len(group) >= 2
        process.kill()
    deadline = threading.Event()
    for _ in range(1200):
        if not any(alive(pid) for pid in group):
            break
        deadline.wait(0.1)
    assert not any(alive(pid) for pid in group)


def children(parent):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with open(f"/proc/{entry}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(entry))
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_records_say_what_they_were_made_with(small_plan, store):
    record = evaluate(small_plan(folds=1, repeats=1), store, Counting())
    path = store.folder / "trials" / "MUTAG" / f"{record['folds'][0]['assessment'][0]}.json"
    trial = json.loads(path.read_text())
    assert trial["kind"] == "assessment"
    assert trial["split"] == "drawn-0"
    assert trial["seed"] == trial["config"]["seed"] == 1
    assert trial["features"] == "label"
    assert len(trial["history"]["validation_accuracy"]) == trial["epochs"] == 2
    assert {"torch", "kergnn", "numba"} <= set(trial["versions"])
    assert trial["measured"]["seconds"] > 0
    assert trial["measured"]["peak_memory"] > 10**7
