"""A window of a minute against a list that is added up anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from datahall.serve.ledger.window import Window

steps = st.lists(st.tuples(st.sampled_from((0, 1, 2, 30, 59, 60, 61, 200)), st.integers(0, 50)), max_size=30)


@given(steps, st.integers(1, 120))
def test_a_window_holds_what_was_taken_in_this_second_and_the_sixty_before(
    steps: list[tuple[int, int]], limit: int
) -> None:
    window, second, taken = Window(limit), 10_000, list[tuple[int, int]]()
    for passed, amount in steps:
        second += passed
        window.roll(second)
        recent = [(at, some) for at, some in taken if second - at <= 60]
        assert window.total == sum(some for _, some in recent)
        wait = window.wait_s(amount)
        if window.total + amount <= limit:
            assert wait == 0
            window.take(amount)
            taken.append((second, amount))
        elif amount > limit:
            assert wait is None
        else:
            assert wait is not None

            def left(after: int, recent: list[tuple[int, int]] = recent) -> int:
                return sum(some for at, some in recent if second + after - at <= 60)  # noqa: B023

            assert left(wait) + amount <= limit < left(wait - 1) + amount


@given(steps, st.data())
def test_what_is_given_back_leaves_the_second_it_was_taken_in(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    window, second, taken = Window(10**9), 10_000, list[list[int]]()
    for passed, amount in steps:
        second += passed
        window.roll(second)
        if taken and data.draw(st.booleans()):
            one = taken[data.draw(st.integers(0, len(taken) - 1))]
            back = data.draw(st.integers(0, one[1]))
            window.change(one[2], -back)
            one[1] -= back
        taken.append([second, amount, window.take(amount)])
        assert window.total == sum(some for at, some, _ in taken if second - at <= 60)


def test_a_clock_that_is_set_back_forgets_nothing_and_goes_on() -> None:
    window = Window(10)
    window.roll(10_000)
    turn = window.take(10)
    window.roll(5_000)
    assert window.left == 0
    window.roll(5_061)
    assert window.left == 10
    window.change(turn, -10)
    assert window.total == 0


def test_a_window_is_empty_once_its_last_amount_is_past() -> None:
    window = Window(10)
    window.roll(1000)
    assert window.empty_s == 0
    window.take(3)
    window.roll(1020)
    assert window.empty_s == 41
    window.take(1)
    assert window.empty_s == 61
    window.roll(1080)
    assert (window.empty_s, window.total) == (1, 1)
    window.roll(1081)
    assert (window.empty_s, window.total) == (0, 0)
