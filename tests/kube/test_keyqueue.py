"""The queue's bookkeeping against a plain model, and the rules one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sickbay.kube.keyqueue import HEAD_START, KeyQueue


def drain(queue: KeyQueue[str]) -> list[str]:
    """Take and finish everything that waits, in order."""
    taken = []
    while (found := queue.take()) is not None:
        taken.append(found[0])
        queue.done(found[0], 0.0)
    return taken


def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue: KeyQueue[str] = KeyQueue()
    for _ in range(3):
        queue.add("a", 0)
    assert drain(queue) == ["a"]


def test_keys_of_one_priority_come_in_the_order_they_were_added() -> None:
    queue: KeyQueue[str] = KeyQueue()
    for key in "cab":
        queue.add(key, 5)
    queue.add("c", 6)
    assert drain(queue) == ["c", "a", "b"]


def test_a_higher_priority_passes_and_a_raised_one_too() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add("low", 0)
    queue.add("high", 1, priority=2)
    queue.add("raised", 2)
    queue.add("raised", 3, priority=1)
    queue.add("high", 3, priority=0)
    assert drain(queue) == ["high", "raised", "low"]


def test_nobody_waits_for_ever_behind_urgent_keys() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add("patient", 0)
    now, served = 0.0, 0
    while True:
        queue.add(f"urgent-{served}", now, priority=1)
        taken = queue.take()
        assert taken is not None
        if taken[0] == "patient":
            break
        served += 1
        now += 1
    assert served == HEAD_START


def test_a_key_in_work_waits_again_after_it_was_added_meanwhile() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add("a", 0)
    queue.take()
    queue.add("a", 1, priority=3)
    assert queue.take() is None
    assert queue.done("a", 2)
    found = queue.take()
    assert found is not None
    assert (found[0], found[1].priority, found[1].since) == ("a", 3, 2)


def test_a_key_that_nobody_added_meanwhile_is_done() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add("a", 0)
    queue.take()
    assert not queue.done("a", 1)
    assert queue.take() is None


def test_the_earliest_of_several_alarms_counts_whenever_it_was_set() -> None:
    for order in ([60, 5, 30], [5, 60, 30], [30, 60, 5]):
        queue: KeyQueue[str] = KeyQueue()
        for when in order:
            queue.add_at("a", when)
        assert queue.next_alarm() == 5
        assert queue.ring(4.9) == 0
        assert queue.ring(5) == 1
        assert queue.next_alarm() is None
        assert queue.ring(100) == 0
        assert drain(queue) == ["a"]


def test_being_looked_at_does_not_cancel_an_alarm() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add_at("a", 60)
    queue.add("a", 0)
    assert drain(queue) == ["a"]
    assert queue.ring(60) == 1
    assert drain(queue) == ["a"]


def test_an_alarm_carries_the_highest_priority_asked_for() -> None:
    queue: KeyQueue[str] = KeyQueue()
    queue.add_at("a", 5, priority=1)
    queue.add_at("a", 60, priority=4)
    queue.ring(5)
    found = queue.take()
    assert found is not None
    assert found[1].priority == 4


def test_failures_are_counted_per_key_until_forgotten() -> None:
    queue: KeyQueue[str] = KeyQueue()
    assert [queue.fail("a"), queue.fail("a"), queue.fail("b")] == [0, 1, 0]
    queue.forget("a")
    assert queue.fail("a") == 0


def test_alarms_moved_earlier_again_and_again_do_not_fill_the_memory() -> None:
    queue: KeyQueue[str] = KeyQueue()
    for when in range(10_000, 0, -1):
        queue.add_at("a", when)
    assert len(queue._alarm_order) < 200
    assert queue.next_alarm() == 1


@dataclass
class Expected:
    """The promises, written down the slow way."""

    waiting: dict[str, tuple[float, int, int]] = field(default_factory=dict)  # since, priority, place
    alarms: dict[str, tuple[float, int]] = field(default_factory=dict)
    working: dict[str, int | None] = field(default_factory=dict)  # priority of what came meanwhile
    place: int = 0

    def add(self, key: str, now: float, priority: int) -> None:
        if key in self.working:
            self.working[key] = max(priority, self.working[key] if self.working[key] is not None else priority)
        elif key in self.waiting:
            since, old, place = self.waiting[key]
            self.waiting[key] = (since, max(old, priority), place)
        else:
            self.place += 1
            self.waiting[key] = (now, priority, self.place)

    def alarm(self, key: str, when: float, priority: int) -> None:
        old = self.alarms.get(key, (when, priority))
        self.alarms[key] = (min(when, old[0]), max(priority, old[1]))

    def next(self) -> str | None:
        order = sorted((since - p * HEAD_START, place, key) for key, (since, p, place) in self.waiting.items())
        return order[0][2] if order else None


keys = st.sampled_from("abcde")
priorities = st.integers(0, 3)


class QueueMachine(RuleBasedStateMachine):
    """Adds, alarms, workers and time in any order; the queue does what `Expected` says."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: KeyQueue[str] = KeyQueue()
        self.expected = Expected()
        self.now = 0.0

    @rule(key=keys, priority=priorities)
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, self.now, priority)
        self.expected.add(key, self.now, priority)

    @rule(key=keys, seconds=st.integers(1, 100), priority=priorities)
    def alarm(self, key: str, seconds: int, priority: int) -> None:
        self.queue.add_at(key, self.now + seconds, priority)
        self.expected.alarm(key, self.now + seconds, priority)

    @rule(seconds=st.integers(0, 80))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        due = sorted((when, key) for key, (when, _) in self.expected.alarms.items() if when <= self.now)
        assert self.queue.ring(self.now) == len(due)
        for _, key in due:
            _, priority = self.expected.alarms.pop(key)
            self.expected.add(key, self.now, priority)

    @rule()
    def take(self) -> None:
        taken = self.queue.take()
        wanted = self.expected.next()
        if len({(self.rank(k)) for k in self.expected.waiting}) == len(self.expected.waiting):
            assert (taken[0] if taken else None) == wanted
        if taken is None:
            assert wanted is None
            return
        key = taken[0]
        assert self.rank(key) == min(self.rank(k) for k in self.expected.waiting)
        assert key not in self.expected.working, "one worker per key"
        del self.expected.waiting[key]
        self.expected.working[key] = None

    @precondition(lambda self: self.expected.working)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.expected.working)))
        again = self.expected.working.pop(key)
        assert self.queue.done(key, self.now) == (again is not None)
        if again is not None:
            self.expected.add(key, self.now, again)

    def rank(self, key: str) -> float:
        since, priority, _ = self.expected.waiting[key]
        return since - priority * HEAD_START

    @invariant()
    def sizes_agree(self) -> None:
        assert len(self.queue) == len(self.expected.waiting)
        assert self.queue.in_work == len(self.expected.working)
        assert self.queue.asleep == len(self.expected.alarms)
        assert self.queue.next_alarm() == min((when for when, _ in self.expected.alarms.values()), default=None)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
