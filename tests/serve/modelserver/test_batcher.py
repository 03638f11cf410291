"""Requests of many clients share calls of a model, and nobody notices but the clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.serve.modelserver.batcher import Batcher, Batching
from datahall.serve.modelserver.refused import Refused


class Doubler:
    """A model that doubles, breaks on what is poisoned, and may be held at its door."""

    def __init__(self, poison: frozenset[int] = frozenset(), *, is_open: bool = True) -> None:
        self.poison = poison
        self.batches: list[list[int]] = []
        self.door = threading.Event()
        self.most_inside = self.inside = 0
        self.lock = threading.Lock()
        if is_open:
            self.door.set()

    def __call__(self, items: list[int]) -> list[int]:
        with self.lock:
            self.batches.append(items)
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        self.door.wait(5)
        with self.lock:
            self.inside -= 1
        if self.poison & set(items):
            raise ZeroDivisionError(items)
        return [2 * item for item in items]

    async def entered(self, num: int) -> None:
        while len(self.batches) < num:
            await asyncio.sleep(0.001)


def loop(main: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 10))


Told = dict[int, list[object]]


def asked(batcher: Batcher[int, int], told: Told, item: int, rows: int = 1, key: object = None) -> object:
    return batcher.submit(item, told.setdefault(item, []).append, rows=rows, key=key)


@given(
    requests=st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.booleans()), max_size=40),
    gone=st.sets(st.integers(0, 39)),
    poisoned=st.frozensets(st.integers(0, 39)),
    most_rows=st.integers(4, 9),
    num_workers=st.integers(1, 3),
    adaptive=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_everybody_hears_the_answer_to_their_own_question_once(
    requests: list[tuple[int, str, bool]],
    gone: set[int],
    poisoned: frozenset[int],
    most_rows: int,
    num_workers: int,
    adaptive: bool,
) -> None:
    model, told, rows = Doubler(poisoned), Told(), [one[0] for one in requests]
    batching = Batching(most_rows=most_rows, num_workers=num_workers, delay_s=0.001, adaptive=adaptive)

    async def main() -> None:
        batcher = Batcher(model, batching)
        tickets = []
        for item, (num, key, pauses) in enumerate(requests):
            tickets.append(asked(batcher, told, item, num, key))
            if pauses:
                await asyncio.sleep(0)
        for item in gone & set(range(len(tickets))):
            batcher.cancel(tickets[item])
        await batcher.close()
        await asyncio.sleep(0)
        assert batcher.num_queued == 0

    loop(main)
    for item, answers in told.items():
        said = ["broke" if isinstance(one, ZeroDivisionError) else one for one in answers]
        its_own = ["broke"] if item in poisoned else [2 * item]
        assert said == its_own or (item in gone and not said)  # who left may have been answered before
    for batch in model.batches:
        assert sum(rows[item] for item in batch) <= most_rows
        assert len({requests[item][1] for item in batch}) == 1
    assert model.most_inside <= num_workers


def test_what_comes_in_one_turn_of_the_loop_is_one_batch_and_what_queued_meanwhile_the_next() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=4))
        for item in range(3):
            asked(batcher, told, item)
        await model.entered(1)
        for item in range(3, 9):
            asked(batcher, told, item)
        model.door.set()
        await batcher.close()
        assert model.batches == [[0, 1, 2], [3, 4, 5, 6], [7, 8]]
        assert batcher.meter.released == {"full": 1, "idle": 2, "due": 0, "isolated": 0}
        assert batcher.meter.rows.num == 3
        assert batcher.meter.rows.total == 9
        assert batcher.meter.wait_s.num == 9

    loop(main)


def test_a_second_worker_waits_for_company_until_the_first_is_due() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=4, delay_s=0.02, num_workers=2))
        asked(batcher, told, 0)
        await model.entered(1)
        asked(batcher, told, 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(model.batches) == 1
        await model.entered(2)
        model.door.set()
        await batcher.close()
        assert batcher.meter.released == {"full": 0, "idle": 1, "due": 1, "isolated": 0}

    loop(main)


def test_without_adaptation_an_idle_model_waits_too() -> None:
    model, told = Doubler(), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=2, delay_s=60.0, adaptive=False))
        asked(batcher, told, 0)
        await asyncio.sleep(0.01)
        assert model.batches == []
        asked(batcher, told, 1)
        await model.entered(1)
        assert batcher.meter.released["full"] == 1

    loop(main)


def test_who_left_is_not_run_and_makes_room() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=1, most_queued=2))
        asked(batcher, told, 0)
        await model.entered(1)
        leaving = asked(batcher, told, 1)
        asked(batcher, told, 2)
        with pytest.raises(Refused) as full:
            asked(batcher, told, 3)
        assert full.value.status == 503
        assert full.value.retry_after_s > 0
        batcher.cancel(leaving)
        batcher.cancel(leaving)
        asked(batcher, told, 4)
        model.door.set()
        await batcher.close()
        assert model.batches == [[0], [2], [4]]
        assert (batcher.meter.num_refused, batcher.meter.num_cancelled) == (1, 1)

    loop(main)


@pytest.mark.parametrize("poison", [frozenset(), frozenset({0})])
def test_who_leaves_while_a_batch_runs_hears_nothing_and_is_not_run_again(poison: frozenset[int]) -> None:
    model, told = Doubler(poison, is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=4))
        tickets = [asked(batcher, told, item) for item in range(4)]
        await model.entered(1)
        batcher.cancel(tickets[2])
        model.door.set()
        await batcher.close()
        await asyncio.sleep(0)

    loop(main)
    assert (told[1], told[2], told[3]) == ([2], [], [6])
    assert not any(2 in batch for batch in model.batches[1:])


def test_a_full_batch_stands_behind_the_one_that_runs_and_who_leaves_it_is_not_run() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=2))
        asked(batcher, told, 0)
        await model.entered(1)
        tickets = [asked(batcher, told, item) for item in range(1, 6)]
        await asyncio.sleep(0)
        assert batcher.num_queued == 3  # one batch stands behind, and no second
        batcher.cancel(tickets[0])
        model.door.set()
        await batcher.close()
        await asyncio.sleep(0)
        assert batcher.meter.num_cancelled == 1

    loop(main)
    assert model.batches == [[0], [2], [3, 4], [5]]
    assert told[1] == []


def test_among_those_that_share_no_batch_who_waits_longest_goes_first() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching())
        asked(batcher, told, 0)
        await model.entered(1)
        for item, key in enumerate("bab", 1):
            asked(batcher, told, item, key=key)
        model.door.set()
        await batcher.close()

    loop(main)
    assert model.batches == [[0], [1, 3], [2]]


def test_the_healthy_are_run_again_without_the_one_that_broke_their_batch() -> None:
    model, told = Doubler(frozenset({5})), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=8))
        for item in range(8):
            asked(batcher, told, item)
        await batcher.close()
        await asyncio.sleep(0)
        assert batcher.meter.num_failed == 1
        assert len(model.batches) <= 1 + 2 * 3  # halved three times
        assert batcher.meter.wait_s.num == 8  # nobody waited twice

    loop(main)
    assert [item for item, answers in told.items() if answers != [2 * item]] == [5]


def test_a_model_that_answers_too_few_swaps_nobodys_answer() -> None:
    told = Told()

    async def main() -> None:
        batcher = Batcher(lambda items: [2 * item for item in items if item != 1], Batching())
        for item in range(3):
            asked(batcher, told, item)
        await batcher.close()
        await asyncio.sleep(0)

    loop(main)
    assert told[0] == [0]
    assert told[2] == [4]
    assert "answered 0 of 1" in str(told[1][0])


def test_a_listener_that_fails_takes_nobodys_answer_along() -> None:
    told, complaints = Told(), list[object]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        batcher = Batcher(Doubler(), Batching())
        batcher.submit(0, lambda answer: 1 // answer)
        asked(batcher, told, 1)
        await batcher.close()
        await asyncio.sleep(0)

    loop(main)
    assert told == {1: [2]}
    assert len(complaints) == 1


def test_a_batcher_that_closes_answers_what_it_has_and_takes_nothing_more() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=2))
        for item in range(5):
            asked(batcher, told, item)
        closing = asyncio.create_task(batcher.close())
        await model.entered(1)
        with pytest.raises(Refused, match="unloaded"):
            asked(batcher, told, 9)
        assert not closing.done()
        model.door.set()
        await closing
        await asyncio.sleep(0)

    loop(main)
    assert {item: told[item] for item in range(5)} == {item: [2 * item] for item in range(5)}


def test_a_request_larger_than_a_batch_is_its_callers_mistake() -> None:
    async def main() -> None:
        batcher = Batcher(Doubler(), Batching(most_rows=4))
        with pytest.raises(ValueError, match="5 rows"):
            batcher.submit(0, print, rows=5)

    loop(main)


def test_a_line_that_is_always_full_starves_no_other() -> None:
    model, told = Doubler(is_open=False), Told()

    async def main() -> None:
        batcher = Batcher(model, Batching(most_rows=2))
        asked(batcher, told, 0)
        await model.entered(1)
        for item, key in enumerate("aabbaa", 1):
            asked(batcher, told, item, key=key)
        model.door.set()
        await batcher.close()

    loop(main)
    assert model.batches == [[0], [1, 2], [3, 4], [5, 6]]


def test_what_is_queued_takes_half_as_long_with_twice_the_workers() -> None:
    async def main() -> None:
        backlogs_s = []
        for num_workers in (1, 2):
            batcher = Batcher(Doubler(), Batching(num_workers=num_workers))
            batcher.meter.run_s.observe(3.0)
            backlogs_s.append(batcher.backlog_s)
            await batcher.close()
        assert backlogs_s == [3.0, 1.5]

    loop(main)
