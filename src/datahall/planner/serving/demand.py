"""What comes in and within which limits it must be answered.

offered = users / (output · TPOT limit + think)     users who read at the pace of the limit, or the rate itself;
                                                    of a trace that of its busiest stretch
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.economics.supply.users import left_of, way_to_users
from datahall.inference.closed_form.conversations import in_turns, reuse
from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import Load
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.recorded.stretch import Stretch, busiest
from datahall.workload.traffic.sharing import Reuse
from datahall.workload.traffic.traffic import Traffic, describe


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in and within which limits it must be answered."""

    traffic: Traffic
    load: Load
    reuse: Reuse | None = None  # of what earlier turns left, where requests are turns of conversations
    promise: Promise
    rate_per_s: float
    users: int = 0  # 0: the rate was given
    think_s: float = 0.0
    cut_fraction: float = 0.0  # of requests that are shortened to fit the context, or left out
    stretch: Stretch | None = None  # of a recorded trace, whose requests these are

    @property
    def whole_prompt(self) -> int:
        """Tokens of a mean prompt, whole ones."""
        return round(self.load.prompt)

    @property
    def whole_output(self) -> int:
        """Tokens of a mean answer, whole ones."""
        return round(self.load.output)

    @property
    def reading_tokens_per_s(self) -> float:
        """The pace at which each user reads: that of the limit."""
        return 1.0 / self.promise.tpot_s

    @property
    def finds_cached(self) -> bool:
        """Whether caches may have some of a prompt: of earlier turns, or what requests have in common."""
        if self.stretch is not None:
            own = self.stretch.requests
            return bool(own.blocks.size or (own.shared > 0).any() or (own.after >= 0).any())
        talk = self.traffic.conversation
        return self.reuse is not None or bool(talk.system_tokens or talk.quoted_tokens)


def demand_of(scenario: Scenario, model: Model) -> Demand:
    """What comes in: a rate, or users who each read one answer after the other at the pace of the limit."""
    said, promise = scenario.one(Said), promise_here(scenario)
    longest = scenario.one(Deployment).max_context or model.max_context
    if said.trace:
        return _recorded(said, promise, longest)
    traffic = requests_of(said, longest)
    load, cut = load_of(traffic), describe(traffic).cut_fraction
    uses = reuse(traffic) if in_turns(traffic) else None
    if traffic.users is None:
        assert said.rate_per_s is not None
        return Demand(
            traffic=traffic,
            load=load,
            reuse=uses,
            promise=promise,
            rate_per_s=said.rate_per_s,
            cut_fraction=cut,
        )
    think_s = traffic.users.think.mean_s
    rate = users_per_s(traffic.users.num, load, promise, think_s)
    return Demand(
        traffic=traffic,
        load=load,
        reuse=uses,
        promise=promise,
        rate_per_s=rate,
        users=traffic.users.num,
        think_s=think_s,
        cut_fraction=cut,
    )


def promise_here(scenario: Scenario) -> Promise:
    """What is promised where the chips stand: users who are far away get the first token later than it leaves."""
    promise, way = scenario.one(Promise), way_to_users(scenario)
    if way is None:
        return promise
    return msgspec.structs.replace(promise, ttft_s=left_of(promise.ttft_s, way))


def users_per_s(num_users: int, load: Load, promise: Promise, think_s: float) -> float:
    """Requests per second of users who read at the pace of the limit and then think."""
    return num_users / (load.output * promise.tpot_s + think_s)


def _recorded(said: Said, promise: Promise, longest: int) -> Demand:
    """The busiest stretch of a trace; the closed form sees the mean of its requests, and nothing that they share."""
    traffic = requests_of(said, 0)  # an engine refuses what is recorded and too long, and cuts nothing
    assert traffic.trace is not None
    found = busiest(traffic.trace, said.busiest_s, longest)
    prompt, output = found.requests.prompt, found.requests.output
    load = Load(
        prompt=float(prompt.mean()),
        output=float(output.mean()),
        spread=float(prompt.std() / prompt.mean()),
        output_spread=float(output.std() / output.mean()),
    )
    return Demand(traffic=traffic, load=load, promise=promise, rate_per_s=found.rate_per_s, stretch=found)
