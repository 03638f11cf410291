"""What each serving technique gives on a load, alone and with the others.

Every line is the same question, "how many requests a second does a chip carry under the promise", asked of a replica
that differs in one thing from the plain one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import msgspec
import numpy as np

from datahall.errors import DatahallError, InfeasibleError
from datahall.inference.closed_form.capacity import BISECTIONS, Held, held
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.adapters import first_token_s
from datahall.inference.engine.disaggregation import handoff_of
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.ladder.uncached import held_uncached
from datahall.inference.step.column import prefill_times, token_times
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time
from datahall.scenario.sections.wanted.promise import Promise
from datahall.units import short
from datahall.workload.precision import Precision, block_scaled

GROUPS = (1, 2, 4, 8, 16)  # chips of a replica that is to hold a rate


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A replica, its load, and how it answers it."""

    replica: Replica
    load: Load
    disaggregated: bool = False
    recomputes: bool = False  # keeps no keys and values: each token computes the whole sequence before it
    num_calls: float = 1.0  # of the model for a request: what a summary takes beside the answers


class PromptPool(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas that only compute prompts: what one of them holds, and what a prompt takes."""

    rate_per_s: float
    prompt_s: float
    handed_s: float  # to those that answer


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What a setting holds per chip, and how it feels at the rate asked."""

    name: str
    detail: str = ""  # what was assumed of it
    held_per_s: float  # requests per second and chip within the limits; 0 where one is broken at once
    ttft_s: float  # mean, at the rate asked
    tpot_s: float
    most_per_s: float = np.nan  # requests per second and chip that it holds without any limit
    note: str = ""
    remedy: str = ""  # where it can be and breaks a limit: what would help
    held: Held | None = (
        None  # of a replica, or of one that only answers where prompts have chips of their own
    )
    prompts: PromptPool | None = None

    @property
    def title(self) -> str:
        """As a table has it."""
        return f"{self.name} ({self.detail})" if self.detail else self.name


Change = Callable[[Setting], Setting | None]  # None: there is nothing to gain


class Technique(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do to a replica: its name, which no input changes, what is assumed of it, and what it does."""

    name: str
    change: Change
    detail: str = ""
    weighs: bool = False  # chooses the format of the weights: only one can

    def effect(self, setting: Setting, slo: Promise, rate_per_s: float) -> Effect:
        """What a setting holds with it."""
        return msgspec.structs.replace(
            effect(self.name, self.change(setting), slo, rate_per_s), detail=self.detail
        )


def chunked(setting: Setting) -> Setting | None:
    """Prompts are cut into pieces that share steps with decodes."""
    if shares_steps(setting):
        return None
    changed = msgspec.structs.replace(setting.replica.engine, chunked_prefill=True, mixed_steps=True)
    return with_replica(setting, engine=changed)


def shares_steps(setting: Setting) -> bool:
    """Whether prompts already share steps with decodes."""
    return setting.replica.engine.chunked_prefill and setting.replica.engine.mixed_steps


def prefix_cached(share: float) -> Change:
    """A share of every prompt is found in the cache of prefixes."""

    def apply(setting: Setting) -> Setting | None:
        if share <= 0:
            return None
        load = msgspec.structs.replace(setting.load, cached=setting.load.prompt * share)
        return msgspec.structs.replace(setting, load=load)

    return apply


def speculative(how: Speculation) -> Change:
    """Drafted tokens are verified together."""

    def apply(setting: Setting) -> Setting | None:
        return with_replica(setting, speculation=how)

    return apply


def quantised(name: str) -> Change:
    """Weights, or weights and activations, in fewer bits; the cache, and activations of 16 bits, stay as they are."""

    def apply(setting: Setting) -> Setting | None:
        now, narrow = setting.replica.precision, Precision.named(name)
        kept = narrow.wide_bytes_per_value == now.wide_bytes_per_value and not narrow.quantises_activations
        narrow = Precision(narrow.weights, now.wide if kept else narrow.activations, now.kv)
        if narrow == setting.replica.precision:
            return None
        blocks = block_scaled(setting.replica.model, narrow)
        return with_replica(setting, precision=narrow, block_scaled=blocks)

    return apply


def narrow_cache(setting: Setting) -> Setting | None:
    """Keys and values in 8 bits."""
    precision = setting.replica.precision
    if precision.kv_bytes_per_value <= 1:
        return None
    return with_replica(setting, precision=msgspec.structs.replace(precision, kv="fp8"))


def disaggregated(setting: Setting) -> Setting | None:
    """Prompts and answers on chips of their own."""
    return msgspec.structs.replace(setting, disaggregated=True)


def with_replica(setting: Setting, **changes: object) -> Setting:
    """The same on another replica."""
    return msgspec.structs.replace(setting, replica=msgspec.structs.replace(setting.replica, **changes))


def effect(name: str, setting: Setting | None, slo: Promise, rate_per_s: float) -> Effect:
    """What a setting holds, and its mean times when one replica's chips get `rate_per_s`."""
    if setting is None:
        return Effect(name=name, held_per_s=np.nan, ttft_s=np.nan, tpot_s=np.nan, note="already so")
    try:
        if setting.disaggregated:
            return _apart(name, setting, slo, rate_per_s)
        most = (held_uncached if setting.recomputes else held)(setting.replica, setting.load, slo)
    except DatahallError as error:
        remedy = error.hint if isinstance(error, InfeasibleError) and not error.field else ""
        return Effect(
            name=name, held_per_s=0.0, ttft_s=np.nan, tpot_s=np.nan, note=error.message, remedy=remedy
        )
    state, chips = most.at(rate_per_s * setting.num_calls), setting.replica.num_chips * setting.num_calls
    return Effect(
        name=name,
        held_per_s=most.rate_per_s / chips,
        ttft_s=state.ttft_s,
        tpot_s=state.tpot_s,
        most_per_s=most.most_per_s / chips,
        note=""
        if state.stable
        else f"unstable: without limits a chip holds {short(most.most_per_s / chips)} requests/s",
        held=most,
    )


def _apart(name: str, setting: Setting, slo: Promise, rate_per_s: float) -> Effect:
    """Two pools: the best ratio of them, and both at the rate asked of one replica's chips.

    prompts: M/D/1 with one prompt at a time;  answers: the steady state without prompts
    """
    replica = setting.replica
    prompts, answers = pools_apart(replica, setting.load, slo)
    prompts_per_s, prompt_s, handed_s = prompts.rate_per_s, prompts.prompt_s, prompts.handed_s
    each = replica.num_chips
    chips_per_rate = each / prompts_per_s + each / answers.rate_per_s if prompts_per_s > 0 else np.inf
    # the same chips that one replica has, divided as the two pools need them
    share = answers.rate_per_s / (prompts_per_s + answers.rate_per_s) if prompts_per_s > 0 else 0.5
    busy = rate_per_s / share * prompt_s
    queue_s = busy / (2.0 * (1.0 - busy)) * prompt_s if busy < 1 else np.inf
    state: State = answers.at(rate_per_s / (1.0 - share))
    return Effect(
        name=name,
        held_per_s=1.0 / chips_per_rate,
        ttft_s=prompt_s + queue_s + handed_s + first_token_s(replica),
        tpot_s=state.tpot_s if state.stable else np.nan,
        note=f"{answers.rate_per_s / prompts_per_s:.2g} replicas for prompts to one for answers"
        if prompts_per_s > 0
        else "a prompt alone breaks the limit",
        held=answers,
        prompts=prompts,
    )


def pools_apart(replica: Replica, load: Load, slo: Promise) -> tuple[PromptPool, Held]:
    """What a replica holds that only computes prompts, and one that only answers."""
    prompt_s, handed_s = prompt_time(replica, load), handover_time(replica, load)
    answers = _answers(replica, load, slo)
    rate = _prompts_under(slo, prompt_s, handed_s)
    return PromptPool(rate_per_s=rate, prompt_s=prompt_s, handed_s=handed_s), answers


def prompt_time(replica: Replica, load: Load) -> float:
    """A prompt alone on a replica, in as many pieces as the budget asks [s]."""
    table = price_steps(replica).table
    computed = max(1.0, load.prompt - load.cached)
    pieces = np.ceil(computed / replica.engine.token_budget)
    piece = np.array([computed / pieces])
    past = np.array([load.cached + (pieces - 1.0) / 2.0 * computed / pieces])
    step_s = (
        token_times(table, piece) + prefill_times(table, piece, past) + table.head_s[1] + table.host.sum()
    )
    return float(pieces * step_s[0])


def handover_time(replica: Replica, load: Load) -> float:
    """Time to move a prompt's cache to another replica, all but the last layer hidden behind the prompt itself [s]."""
    way = handoff_of(replica)
    return way.setup_s + way.token_s * load.prompt * way.shown_fraction


def _answers(replica: Replica, load: Load, slo: Promise) -> Held:
    """A replica that only decodes: its prompts come with their cache."""
    tail = msgspec.structs.replace(load, cached=load.prompt - 1.0)
    return held(replica, tail, msgspec.structs.replace(slo, ttft_s=float("inf")))


def _prompts_under(slo: Promise, prompt_s: float, handed_s: float) -> float:
    """The greatest rate of prompts at which waiting, service and handover keep the TTFT (M/D/1, exponential tail)."""
    low, high = 0.0, 1.0 / prompt_s
    if prompt_s + handed_s > slo.ttft_s:
        return 0.0
    for _ in range(BISECTIONS):
        rate = (low + high) / 2.0
        busy = rate * prompt_s
        wait_s = busy / (2.0 * (1.0 - busy)) * prompt_s if busy < 1 else np.inf
        kept = prompt_s + handed_s - log(1.0 - slo.percentile) * wait_s <= slo.ttft_s
        low, high = (rate, high) if kept else (low, rate)
    return low


def speed_up(replica: Replica, how: Speculation, num_sequences: int, context: float) -> float:
    """How many times faster a batch of so many sequences decodes with speculation.

    E · T(n) / (T_verify(n · (drafted + 1)) + T_draft)
    """
    plain = price_steps(msgspec.structs.replace(replica, speculation=None))
    drafted = price_steps(msgspec.structs.replace(replica, speculation=how))
    plain_s = decode_step_time(plain.table, num_sequences, context)
    drafted_s = decode_step_time(drafted.table, num_sequences, context)
    return drafted.tokens_per_step * plain_s / drafted_s
