"""Power of chips that serve, held at a concurrency: the points of the ML.ENERGY benchmark.

Its power is predicted at its concurrency and its rate of tokens, which both describe the load: a step lasts as long as
the sequences at once over that rate, and longer where our kernels do.  The same, and the energy of a token, are
predicted from the concurrency alone too, with our own rate: errors of our step times are in these.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gamma

import msgspec

from datahall.inference.closed_form.steady_state import Load, most_sequences
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.power.activity import Activity
from datahall.power.chip import chip_power_w
from datahall.power.constants import band_of, basis_of, constants
from datahall.power.serving import StepWork, mean_work
from datahall.validation.inference.energy import read_energy
from datahall.validation.inference.replay import sized
from datahall.validation.inference.run import THROUGHPUT, Run, Traffic
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported

POWER, UNAIDED, ENERGY = "power", "power, rate predicted", "energy per token"
LARGEST_SPREAD = 2.0  # of lengths: beyond, a benchmark's own limit cuts them


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A point as we understand it: a replica's mean step, and how long the step took by the stated rate."""

    run: Run
    work: StepWork
    num_decoding: float  # sequences of a rank
    stated_step_s: float

    @property
    def replica(self) -> Replica:
        return self.run.replica

    @property
    def activity(self) -> Activity:
        """At the stated rate."""
        return self.work.within(self.stated_step_s)

    @property
    def tokens_per_s(self) -> float:
        """Of all ranks, by our own step."""
        return self.num_decoding * self.replica.dp / self.work.time_s


def predict_serving(row: Row) -> Iterator[Prediction | Unsupported]:
    """The power of a chip and the energy of a token at a point."""
    point = understood(row)
    chip = point.replica.chip
    drawn_w = chip_power_w(chip, point.activity)
    measured_w = row.positive("power_w_per_accel")
    yield _prediction(point, POWER, measured_w, drawn_w, "w", band_of("chip", chip))
    alone_w = chip_power_w(chip, point.work.activity)
    yield _prediction(point, UNAIDED, measured_w, alone_w, "w", constants().bands[UNAIDED])
    if row.text("energy_j_per_output_token"):
        token_j = alone_w * point.replica.num_chips / point.tokens_per_s
        measured_j = row.positive("energy_j_per_output_token")
        yield _prediction(
            point, ENERGY, measured_j, token_j, "j_per_token", constants().bands["energy per token"]
        )


def understood(row: Row) -> Point:
    """Read a point: the replica, its mean step, and the time of a step that its rate states."""
    if not row.text("system").startswith("vLLM "):
        raise RowError("the row names no engine and model")
    run = read_energy(row)
    replica, traffic = run.replica, run.traffic
    load = load_of(traffic)
    held, _ = most_sequences(replica, load, kv_capacity(sized(replica, traffic, 1)))
    decoding = min(traffic.users / replica.dp, held)
    return Point(
        run=run,
        work=mean_work(replica, load, decoding),
        num_decoding=decoding,
        stated_step_s=decoding * replica.dp / run.measured[THROUGHPUT],
    )


def load_of(traffic: Traffic) -> Load:
    """The mean request; lengths that vary as a Weibull law of shape k have a deviation of √(Γ(1+2/k)/Γ(1+1/k)² − 1)."""
    width = traffic.spread_ratio  # 1/k
    spread = (gamma(1.0 + 2.0 * width) / gamma(1.0 + width) ** 2 - 1.0) ** 0.5 if width else 0.0
    spread = min(spread, LARGEST_SPREAD)
    return Load(
        prompt=traffic.prompt_tokens, output=traffic.output_tokens, spread=spread, output_spread=spread
    )


def _prediction(
    point: Point, metric: str, measured: float, predicted: float, unit: str, band: tuple[float, float]
) -> Prediction:
    replica, row = point.replica, point.run.row
    split = f"TP {replica.tp} DP {replica.dp} EP {replica.ep}"
    return Prediction(
        source=row.text("source").split(" (")[0],
        hardware=replica.chip.name,
        model=replica.model.name,
        label=f"{replica.model.name}, {row.text('workload')}, {split}, {point.run.traffic.users} at once",
        where=row.where,
        measured=measured,
        predicted=predicted,
        low=predicted * band[0],
        high=predicted * band[1],
        unit=unit,
        metric=metric,
        basis=basis_of(replica.chip),
    )
