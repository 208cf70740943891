"""Runs an evaluation: keeps the workers busy, the store complete and the folds apart."""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from kergnn.evaluation.executors import Executor, Limits, Outcome
from kergnn.evaluation.protocol import FoldRun, Plan, run_fold, summarize, validation_score
from kergnn.evaluation.store import ResultStore
from kergnn.evaluation.trial import Record, Trial, failed_record

_ATTEMPTS = 2
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Status:
    """How far an evaluation is.

    Args:
        total: number of trials.
        done: trials that are in the store, failed ones included.
        running: trials that run now.
        failed: trials that failed.
        folds: the folds that are finished.
        best: best validation score so far, of the metric that selects.
        seconds_left: a guess, ``None`` before the first trial has ended.
        detail: how far a trial is that takes long.
    """

    total: int
    done: int = 0
    running: int = 0
    failed: int = 0
    folds: tuple[Record, ...] = ()
    best: float | None = None
    seconds_left: float | None = None
    detail: str = ""


def evaluate(
    plan: Plan,
    store: ResultStore,
    executor: Executor,
    report: Callable[[Status], None] = lambda status: None,
    retry_failed: bool = False,
) -> Record:
    """Run what is not in the store yet and return the record of the evaluation.

    Args:
        plan: the configurations and folds.
        store: where records are found and written.
        executor: where trials run.
        report: called whenever something has changed.
        retry_failed: run trials again that failed in an earlier call.
    """
    # Workers import the script that started them: without a guard it would start again there, and
    # wait for trials that its parent has claimed.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError("call evaluate below `if __name__ == '__main__':`")
    executor.kernels = store.kernels.resolve()
    with executor:
        try:
            return _Evaluation(plan, store, executor, report, retry_failed).run()
        finally:
            store.locks.close()


@dataclass
class _Progress:
    """A fold's generator, the trials it waits for, and their records by key."""

    run: FoldRun
    trials: list[Trial] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)


class _Evaluation:
    def __init__(
        self,
        plan: Plan,
        store: ResultStore,
        executor: Executor,
        report: Callable[[Status], None],
        retry_failed: bool,
    ) -> None:
        self.plan, self.store, self.executor, self.report = plan, store, executor, report
        self.retry_failed, self.limits = retry_failed, executor.limits
        self.queue: deque[Trial] = deque()
        self.elsewhere: list[Trial] = []
        self.running: dict[str, Trial] = {}
        self.waiting: dict[str, list[_Progress]] = {}
        self.attempts: Counter[str] = Counter()
        self.known: dict[str, Record] = {}
        self.known_before: dict[str, Record] = {}  # of folds that another call has finished
        self.folds: list[Record] = []
        self.started: dict[str, float] = {}
        self.seconds: list[float] = []
        self.detail = ""
        executor.progress = self._progress

    def run(self) -> Record:
        for fold in self.plan.folds:
            plan = self.plan
            run = run_fold(fold, plan.new_search(), plan.repeats, plan.seed, plan.refit)
            self._expect(_Progress(run, next(run)), last=True)
        while len(self.folds) < len(self.plan.folds):
            self._submit()
            self._report()
            if self.running:
                self._take(self.executor.wait())
            elif self.elsewhere:
                time.sleep(_POLL_SECONDS)
            self.queue.extend(self.elsewhere)
            self.elsewhere.clear()
        self._report()
        return self._save()

    def _expect(self, progress: _Progress, last: bool = False) -> None:
        """Queue a fold's trials: at the end, or in front, so that a fold begun is soon finished."""
        new = list({trial.key: trial for trial in progress.trials}.values())
        for trial in new:
            self.waiting.setdefault(trial.key, []).append(progress)
        if last:
            self.queue.extend(new)
        else:
            self.queue.extendleft(reversed(new))
        if not new:
            self._advance(progress)

    def _submit(self) -> None:
        """Look trials up, and start those that nobody has done or is doing."""
        while self.queue and len(self.running) < self.executor.workers:
            trial = self.queue.popleft()
            if trial.key not in self.waiting or trial.key in self.running:
                continue  # folds with the same split share their trials
            claimed = self.store.locks.claim(trial.key)
            # Looked up after the claim: another process may have finished it just before.
            record = self.store.trial(self.plan.dataset, trial.key)
            if record is not None and not self._again(record):
                self._deliver(record)
            elif claimed:
                self.running[trial.key] = trial
                self.started[trial.key] = time.monotonic()
                self.executor.submit(trial)
                continue
            else:
                self.elsewhere.append(trial)
            if claimed:
                self.store.locks.release(trial.key)

    def _again(self, record: Record) -> bool:
        """Whether a stored trial is to run again: on demand, or when it may use more than then."""
        if record["status"] != "oor":
            return self.retry_failed and record["status"] == "failed"
        before = Limits(**record["reached"]["limits"])
        pairs = ((before.seconds, self.limits.seconds), (before.memory, self.limits.memory))
        return any(old is not None and (new is None or new > old) for old, new in pairs)

    def _progress(self, detail: str) -> None:
        if detail != self.detail:
            self.detail = detail
            self._report()

    def _take(self, outcome: Outcome) -> None:
        key, record = outcome.trial.key, outcome.record
        self.detail = ""
        del self.running[key]
        self.seconds.append(time.monotonic() - self.started.pop(key))
        if record is None:
            self.attempts[key] += 1
            if self.attempts[key] < _ATTEMPTS and outcome.reached is None:
                self.queue.appendleft(outcome.trial)
                self.store.locks.release(key)
                return
            reached = outcome.reached and {**outcome.reached, "limits": asdict(self.limits)}
            record = failed_record(outcome.trial, self.executor.threads, outcome.error, reached)
        self.store.add_trial(record)
        self.store.locks.release(key)
        self._deliver(record)

    def _deliver(self, record: Record) -> None:
        """Hand a record to its fold, which goes on when it has all it waits for."""
        self.known[record["key"]] = record
        for progress in self.waiting.pop(record["key"]):
            progress.records[record["key"]] = record
            if all(trial.key in progress.records for trial in progress.trials):
                self._advance(progress)

    def _advance(self, progress: _Progress) -> None:
        try:
            trials = progress.run.send([progress.records[t.key] for t in progress.trials])
        except StopIteration as stop:
            self.folds.append(stop.value)
            self._save()
            return
        self._expect(_Progress(progress.run, trials))

    def _save(self) -> Record:
        """Write the evaluation as far as it is, with folds that another call has finished."""
        self.store.locks.claim(self.plan.key, wait=True)
        folds = {
            fold["fold"]: fold
            for record in self.store.evaluations()
            if (record["dataset"], record["key"]) == (self.plan.dataset, self.plan.key)
            for fold in record["folds"]
        }
        for fold in self.folds:
            # Another call may have repaired what had failed here.
            if fold["status"] == "done" or folds.get(fold["fold"], fold)["status"] != "done":
                folds[fold["fold"]] = fold
        trials = self._records(folds.values())
        record = summarize(self.plan, list(folds.values()), trials, _measured(trials))
        if self.plan.repeats:
            self.store.add_evaluation(record)
        self.store.locks.release(self.plan.key)
        return record

    def _records(self, folds: Iterable[Record]) -> list[Record]:
        """Return the records of all trials of some folds, each once."""
        keys = dict.fromkeys(k for fold in folds for k in fold["selection"] + fold["assessment"])
        for key in keys.keys() - self.known.keys():
            stored = self.store.trial(self.plan.dataset, key)
            if stored is not None:
                self.known_before[key] = stored
        known = {**self.known_before, **self.known}
        return [known[key] for key in keys if key in known]

    def _report(self) -> None:
        records = self.known.values()
        done = len(records)
        total = self.plan.trials_per_fold * len(self.plan.folds)
        scores = [score[0] for score in map(validation_score, records) if score is not None]
        left = None
        if self.seconds:
            left = statistics.fmean(self.seconds) * (total - done) / self.executor.workers
        self.report(
            Status(
                total=total,
                done=done,
                running=len(self.running),
                failed=sum(record["status"] != "done" for record in records),
                folds=tuple(self.folds),
                best=max(scores, default=None),
                seconds_left=left,
                detail=self.detail,
            )
        )


def _measured(records: list[Record]) -> dict[str, Any]:
    """Return how long all trainings took, and how long and how large the assessment runs were."""
    done = [record for record in records if record["status"] == "done"]
    measured = [record["measured"] for record in done if record["kind"] == "assessment"]
    if not measured:
        return {}
    epochs = [m["seconds_per_epoch"] for m in measured if "seconds_per_epoch" in m]
    return {
        **({"seconds_per_epoch": statistics.median(epochs)} if epochs else {}),
        "finished": max(m["finished"] for m in measured),
        "seconds_of_all_trainings": round(math.fsum(r["measured"]["seconds"] for r in done), 1),
        "seconds_per_training": statistics.median(m["seconds"] for m in measured),
        "peak_memory": max((m["peak_memory"] or 0) for m in measured),
    }
