"""A trace has the energy of its phases, keeps it behind a filter, and sums over nodes as random phases do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.power.swing.waves import square, square_trace

from datahall.power.swing.spectrum import spectrum
from datahall.power.swing.timeline import BACKWARD, EXCHANGE, FORWARD, WAIT, Group, Span, Timeline
from datahall.power.swing.trace import MOST_SAMPLES, Trace, low_pass, step_trace, together

LEVELS = {FORWARD: 650.0, BACKWARD: 690.0, WAIT: 140.0, EXCHANGE: 270.0}
times = st.lists(st.tuples(st.sampled_from(list(LEVELS)), st.floats(1e-5, 3.0)), min_size=1, max_size=30)


def laid(cuts: list[list[tuple[str, float]]]) -> Timeline:
    """Groups whose spans are stretched to one step."""
    step_s = max(sum(time_s for _, time_s in cut) for cut in cuts)
    groups = []
    for number, cut in enumerate(cuts):
        scale, at_s, spans = step_s / sum(time_s for _, time_s in cut), 0.0, []
        for phase, time_s in cut:
            spans.append(Span(phase, at_s, at_s + scale * time_s))
            at_s += scale * time_s
        groups.append(Group(name=str(number), num_chips=100.0 * (number + 1), spans=tuple(spans)))
    return Timeline(step_s=step_s, groups=tuple(groups))


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(times, min_size=1, max_size=4), tau_s=st.sampled_from([0.0, 1e-3, 0.05, 2.0]))
def test_the_mean_of_a_trace_is_that_of_its_phases(cuts: list[list[tuple[str, float]]], tau_s: float) -> None:
    timeline = laid(cuts)
    by_hand = sum(
        group.num_chips * sum(LEVELS[one.phase] * (one.end_s - one.start_s) for one in group.spans)
        for group in timeline.groups
    ) / timeline.step_s  # fmt: skip
    trace = step_trace(timeline, LEVELS, time_constant_s=tau_s)
    assert trace.mean_w == pytest.approx(by_hand, rel=1e-9)
    assert timeline.mean_w(LEVELS) * timeline.num_chips == pytest.approx(by_hand, rel=1e-9)
    assert trace.low_w >= timeline.num_chips * min(LEVELS.values()) * (1 - 1e-9)
    assert trace.peak_w <= timeline.num_chips * max(LEVELS.values()) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(times, min_size=1, max_size=3), tau_s=st.sampled_from([0.0, 0.01, 0.3]))
def test_the_squares_of_the_spectrum_add_up_to_those_of_the_trace(
    cuts: list[list[tuple[str, float]]], tau_s: float
) -> None:
    """Parseval."""
    trace = step_trace(laid(cuts), LEVELS, time_constant_s=tau_s)
    assert spectrum(trace).rms_w == pytest.approx(float(trace.power_w.std()), rel=1e-6, abs=1e-6)


def test_the_highest_frequency_counts_once() -> None:
    """Every other sample 2 W: one frequency, half a sampling rate, with a mean square of 1."""
    found = spectrum(Trace(period_s=1.0, power_w=np.tile([0.0, 2.0], 50)))
    assert found.rms_w == pytest.approx(1.0)
    assert found.dominant_hz == pytest.approx(50.0)


def test_a_filter_is_that_of_a_capacitor_behind_a_resistor() -> None:
    """The same by stepping dP/dt = (load − P)/τ for many periods."""
    tau_s = 0.2
    plain = square_trace(10e6, 50e6, duty=0.6, step_s=1.5)
    seen_w, dt_s = plain.mean_w, plain.step_s
    for _ in range(20):
        stepped = []
        for load_w in plain.power_w.tolist():
            seen_w += (load_w - seen_w) * (1.0 - np.exp(-dt_s / tau_s))
            stepped.append(seen_w)
    smooth = low_pass(plain, tau_s)
    assert smooth.power_w == pytest.approx(np.array(stepped), abs=1e-6 * plain.swing_w)
    assert smooth.mean_w == pytest.approx(plain.mean_w)


def test_filters_only_ever_make_a_swing_smaller() -> None:
    swings = [
        square_trace(time_constant_s=tau_s).swing_w for tau_s in (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
    ]
    assert swings == sorted(swings, reverse=True)
    assert swings[-1] < 0.02 * swings[0]


def test_a_square_wave_has_the_amplitudes_of_the_textbook() -> None:
    """a_k = 2 ΔP / (π k) · |sin(π k D)|."""
    found = spectrum(square_trace(0.0, 75e6, duty=0.8, step_s=4.0))
    order = np.arange(1, 20)
    by_hand = 2 * 75e6 / (np.pi * order) * np.abs(np.sin(np.pi * order * 0.8))
    assert found.amplitudes_w[:19] == pytest.approx(by_hand, rel=1e-3, abs=1e3)
    assert found.dominant_hz == pytest.approx(0.25)
    assert found.frequencies_hz[0] == pytest.approx(0.25)


def test_what_lies_in_the_risky_band_depends_on_the_step() -> None:
    shares = {
        step_s: spectrum(square_trace(step_s=step_s)).band_fraction for step_s in (0.05, 1.0, 4.0, 60.0)
    }
    assert shares[0.05] == 0.0  # 20 Hz and above
    assert shares[4.0] > 0.9
    assert 0.0 < shares[60.0] < 0.5  # most of it is slower than 0.2 Hz


@pytest.mark.parametrize(
    ("hz", "is_risky"), [(0.15, False), (0.25, True), (0.8, True), (2.5, True), (3.5, False)]
)
def test_areas_plants_and_shafts_resonate_from_a_fifth_of_a_hertz_to_three(hz: float, is_risky: bool) -> None:
    wave = np.sin(2 * np.pi * hz * (np.arange(4000) + 0.5) / 200)
    found = spectrum(Trace(period_s=20.0, power_w=5e6 + 1e6 * wave))
    assert found.band_fraction == pytest.approx(float(is_risky), abs=1e-6)


@pytest.mark.parametrize(("step_s", "num"), [(0.5, 500), (4.0, 4000), (1e-3, 64), (1e4, MOST_SAMPLES)])
def test_a_step_is_sampled_at_a_millisecond_as_far_as_that_is_cheap(step_s: float, num: int) -> None:
    trace = square_trace(step_s=step_s)
    assert trace.power_w.size == num
    assert trace.period_s == step_s


def test_the_ramp_across_the_end_of_a_step_counts() -> None:
    timeline, levels = square(0.0, 1.0, duty=0.5, step_s=1.0)
    rising_only_at_the_end = step_trace(timeline, levels, time_constant_s=0.0)
    assert rising_only_at_the_end.ramp_w_per_s == pytest.approx(1e3, rel=1e-6)
    saw = Trace(period_s=1.0, power_w=np.linspace(0.0, 1.0, 100))
    assert saw.ramp_w_per_s == pytest.approx(100.0)  # back from 1 to 0 within one sample


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
def test_nodes_sum_as_nodes_of_random_phase_do(rho: float) -> None:
    """σ² of a sum by brute force: each node has a part in common, and one of its own at a random time of the step."""
    rng, wave = np.random.default_rng(11), square_trace(1e3, 7e3, duty=0.7, step_s=1.0)
    beyond, num_nodes, found = wave.power_w - wave.mean_w, 40, []
    for _ in range(1200):
        shifts = rng.integers(0, beyond.size, num_nodes)
        own = np.sum([np.roll(beyond, shift) for shift in shifts], axis=0)
        common = num_nodes * np.roll(beyond, rng.integers(0, beyond.size))
        found.append(np.var(np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own))
    by_law = together(wave.times(num_nodes), coherence_fraction=rho, num_nodes=num_nodes)
    assert np.sqrt(np.mean(found)) == pytest.approx(by_law.power_w.std(), rel=0.05)
    assert by_law.mean_w == pytest.approx(num_nodes * wave.mean_w)


def test_the_cost_of_a_trace_does_not_hang_on_the_number_of_chips() -> None:
    timeline, levels = square(100.0, 700.0, duty=0.8, step_s=2.0)
    (group,) = timeline.groups
    for num in (1.0, 1e6):
        many = Timeline(step_s=2.0, groups=(Group(name="all", num_chips=num, spans=group.spans),))
        trace = step_trace(many, levels, time_constant_s=0.01)
        assert trace.power_w.size == 2000
        assert trace.mean_w == pytest.approx(num * 580.0)
