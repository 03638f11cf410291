"""Mean latencies of a simulated service as figures: what was simulated, the closed form beside it, and their bands."""

from __future__ import annotations

from math import isfinite

from datahall.breakdown import Breakdown, simulated
from datahall.counted import counted
from datahall.inference.closed_form.bottleneck import mean_step
from datahall.inference.closed_form.load import load_of
from datahall.inference.fleet.service import Outcome
from datahall.inference.simulation.histogram import TPOT, TTFT
from datahall.inference.step.floor import token_band


def tpot_figure(outcome: Outcome) -> Breakdown | None:
    """The mean time per output token; none where no answer has a second one."""
    service = outcome.service
    beside: tuple[Breakdown, ...] = ()
    context = 0.0  # tokens before one of an answer, on average; what is not known counts as none
    if service.steady is not None:
        load = load_of(service.traffic)
        context = load.prompt + load.output / 2.0
        if service.steady.stable:
            beside = (mean_step(service.replica, load, service.steady).figure,)
    band = service.price.band
    if service.cache is None and sum(pool.role != "prefill" for pool in service.fleet.pools) == 1:
        # answers of a cache take no time per token, and another pool has a floor of its own
        band = token_band(service.replica, service.price, outcome.run.mean_s(TPOT), context)
    of = "(last token − first token) / (tokens − 1)"
    return _mean(outcome, "time per output token", TPOT, of, band, beside)


def ttft_figure(outcome: Outcome) -> Breakdown | None:
    """The mean time to the first token; none where nothing was measured."""
    band = outcome.service.replica.engine.band("TTFT")
    return _mean(outcome, "time to the first token", TTFT, "first token − arrival", band)


def _mean(
    outcome: Outcome,
    name: str,
    measure: int,
    of: str,
    band: tuple[float, float],
    beside: tuple[Breakdown, ...] = (),
) -> Breakdown | None:
    """A mean over requests with the band in which eight of ten measured runs of the engine stay."""
    service, value = outcome.service, outcome.run.mean_s(measure)
    if not isfinite(value):
        return None
    num = outcome.run.num_measured
    how = f"mean over {counted(num, 'request')} of {of}, seed {service.seed}"
    engine = service.replica.engine
    return (
        simulated(name, value, "s", how, *beside)
        .with_band(*band, f"{engine.title}, kernels {service.price.level}")
        .with_note(sources=(engine.source,))
    )
