"""The figures of `workload/` are what they were: see `record.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import numpy as np
from tests.recorded.record import ROOT, check_calls, check_questions, or_refused, shipped
from tests.recorded.sampled import sampled

from datahall.workload.backward import Gradients, training_pass
from datahall.workload.division import Split
from datahall.workload.expert_load import busiest_rank, evenly_routed, popularity
from datahall.workload.flops import forward_flop_per_token, mfu_fraction, token_work, training_flop_per_token
from datahall.workload.forward import forward_pass, mixed_pass
from datahall.workload.fusion import STYLES
from datahall.workload.memory.activation import MODULES_OF, Saving, activation_bytes, outside_tensors
from datahall.workload.memory.kv_cache import kv_bytes, kv_bytes_per_token, recurrent_state_bytes
from datahall.workload.memory.recipe import RECIPES, StateRecipe
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.memory.state import chip_parameters, serving_weight_bytes, state_bytes
from datahall.workload.operator import experts_hit, keys_read, total_weight_bytes, visible_tokens
from datahall.workload.parameters import count_parameters, published_difference
from datahall.workload.precision import Precision, block_scaled
from datahall.workload.sharding import Sharding
from datahall.workload.step import Chunk
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.lengths import cut_to_context, lognormal_median, mean_tokens, quantile_tokens
from datahall.workload.traffic.shapes import Empirical, Fixed, Lengths, Lognormal, Quantiles, Uniform
from datahall.workload.traffic.traffic import TraceReplay, Traffic, describe, expected_tokens, generate
from datahall.workload.traffic.users import Users

MODELS = sorted(model.name for model in shipped().models())
FORMATS = ("bf16", "fp8", "fp8-kv8", "w4a16", "nvfp4", "fp16", "int8")
# every kind of layer there is
KINDS = (
    "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b", "nemotron-h-8b", "qwen3-next-80b-a3b", "gpt-oss-20b",
    "falcon-7b", "gpt-j-6b", "bloom-560m", "nemotron-3-nano-30b-a3b", "llama-4-scout", "deepseek-v3.2", "opt-125m",
)  # fmt: skip
CONTEXTS = np.array([1.0, 127.0, 511.0, 512.0, 513.0, 4095.0, 4096.0, 4097.0, 50_000.0])
TRACE = str(ROOT / "tests" / "answers" / "files" / "requests.jsonl")


def models() -> Iterator[tuple[str, object]]:
    """What is counted of every model of the catalogue."""
    for place, name in enumerate(MODELS):
        model, form = shipped().model(name), FORMATS[place % len(FORMATS)]
        precision = Precision.named(form)
        counts = count_parameters(model)
        shards = {
            "tp": np.array([1.0, 2.0, 8.0]),
            "pp": np.array([1.0, 2.0, 4.0]),
            "ep": np.array([1.0, 2.0, 8.0]),
        }
        yield f"{name} in {form}", [
            counts, published_difference(model, counts), block_scaled(model, precision),
            *(forward_flop_per_token(model, CONTEXTS, one) for one in ("causal", "full", "matmul")),
            training_flop_per_token(model, 1000.0), token_work(model, 3000, precision),
            kv_bytes_per_token(model, precision, 2.0), kv_bytes(model, CONTEXTS, precision, 4.0),
            recurrent_state_bytes(model, precision, 2.0),
            serving_weight_bytes(model, counts, precision, **shards),
            [Split(tp=tp, ep=ep, num_groups=groups, dp_attention=apart).broken(model)
             for tp in (1.0, 2.0, 3.0, 16.0) for ep in (1.0, 4.0, 5.0)
             for groups, apart in ((1.0, False), (2.0, True))],
        ]  # fmt: skip


def passes() -> Iterator[tuple[str, object]]:
    """Operators, saved tensors and the peak of a step, of every kind of layer, under drawn options."""
    draw = random.Random(1)
    for place in range(90):
        name, form = KINDS[place % len(KINDS)], draw.choice(FORMATS)
        precision = Precision.named(form)
        model = shipped().model(name)
        style, recompute = draw.choice(sorted(STYLES)), draw.choice(RECOMPUTES)
        sharding = Sharding(
            tp=draw.choice((1.0, 2.0, 4.0)), ep=draw.choice((1.0, 2.0, 8.0)), cp=draw.choice((1.0, 2.0)),
            num_groups=draw.choice((0.0, 0.0, 4.0)), sequence_parallel=draw.random() < 0.5,
            dp_attention=draw.random() < 0.2,
        )  # fmt: skip
        batch, query, past = (
            np.array([1.0, 3.0, 64.0]),
            draw.choice((1.0, 7.0, 1000.0)),
            np.array([0.0, 600.0, 5000.0]),
        )
        shared = {"sharding": sharding, "precision": precision, "fusion": style}
        label = f"{place} {name} in {form} {style} {recompute}"
        forward = partial(
            forward_pass, model, batch=batch, query=query, past=past, logits=draw.choice(("last", "all", "none")),
            quantise=draw.random() < 0.7, cached=draw.random() < 0.7,
            latent=draw.choice(("auto", "absorbed", "expanded")), **shared,
        )  # fmt: skip
        found = or_refused(forward)
        yield f"{label} forward", [found, total_weight_bytes(found)] if isinstance(found, tuple) else found
        chunks = [Chunk(2.0, 300.0, 50.0), Chunk(batch, 1.0, past)]
        yield f"{label} mixed", or_refused(partial(mixed_pass, model, chunks, **shared))
        gradients = Gradients(
            value_bytes=draw.choice((2.0, 4.0)), accumulate=draw.random() < 0.5, flash=draw.random() < 0.5,
            quantise=draw.random() < 0.5, transposes=draw.random() < 0.5,
        )  # fmt: skip
        trained = partial(
            training_pass, model, batch=batch, seq=2048.0, recompute=recompute, gradients=gradients,
            embed=draw.random() < 0.7, head=draw.random() < 0.7, **shared,
        )  # fmt: skip
        yield f"{label} trained", or_refused(trained)
        saving = Saving(
            modules=draw.choice(MODULES_OF), flash=draw.random() < 0.5, dropout=draw.random() < 0.5,
            value_bytes=draw.choice((2.0, 4.0)),
        )  # fmt: skip
        kept = {"sharding": sharding, "recompute": recompute, "saving": saving}
        chip = chip_parameters(count_parameters(model), tp=2.0, pp=np.array([1.0, 2.0, 4.0]), ep=2.0)
        recipe = StateRecipe.named(draw.choice(sorted(RECIPES)))
        state = state_bytes(
            chip, recipe, zero=np.array([0.0, 1.0, 2.0]), dp=4.0, expert_dp=draw.choice((None, 2.0))
        )
        yield f"{label} memory", [
            activation_bytes(model, batch=batch, seq=2048.0, **kept), outside_tensors(model, saving, 4.0), state,
            state.total_bytes, recipe.total, recipe.updated, recipe.with_copies(2.0),
        ]  # fmt: skip


def tokens() -> Iterator[tuple[str, object]]:
    """Experts that tokens hit, the busiest of the ranks, keys that a query sees: around windows and whole numbers."""
    rows = np.array([1.0, 2.0, 8.0, 100.0, 4096.0, 1e6])
    for experts, chosen in ((8, 2), (128, 8), (256, 8), (16, 1)):
        for ranks in (1, 2, 8):
            yield f"{chosen} of {experts} on {ranks}", [
                experts_hit(rows, experts, chosen, experts / ranks), evenly_routed(rows, experts, chosen, ranks),
                *(busiest_rank(rows, experts, chosen, ranks, one) for one in (0.5, 1.0, 1.01, 1.2, 2.0)),
                popularity(rows, experts, chosen, 1.2),
            ]  # fmt: skip
    for window in (0.0, 511.0, 512.0, 513.0):
        seen = [
            both(query, CONTEXTS, window)
            for both in (visible_tokens, keys_read)
            for query in (1.0, 2.0, 512.0, 9e3)
        ]
        yield f"keys in a window of {window:g}", seen
    yield "mfu", mfu_fraction(1e6, 6e10, 64.0, 9e14)


LENGTHS: dict[str, Lengths] = {
    "fixed": Fixed(300),
    "uniform": Uniform(50, 900),
    "lognormal": Lognormal(400.0, 1.3),
    "median": lognormal_median(400.0, 250.0),
    "quantiles": Quantiles(((0.0, 10.0), (0.5, 200.0), (0.95, 900.0), (1.0, 2000.0))),
    "empirical": Empirical((5, 50, 50, 700, 1200)),
}
HOURS = tuple(1.0 + hour % 5 for hour in range(24))
COMING = {
    "poisson": Arrivals(rate_per_s=3.0),
    "regular": Arrivals(rate_per_s=3.0, gaps="constant"),
    "at once": Arrivals(rate_per_s=3.0, gaps="at-once"),
    "gamma": Arrivals(rate_per_s=3.0, gaps="gamma", variation_ratio=2.5),
    "hours": Arrivals(rate_per_s=0.02, hourly_factor=HOURS),
    "swing": Arrivals(rate_per_s=0.02, swing_fraction=0.6, peak_s=40_000.0),
    "on and off": Arrivals(rate_per_s=3.0, on_s=20.0, off_s=40.0),
    "busy and quiet": Arrivals(rate_per_s=3.0, on_s=20.0, off_s=40.0, quiet_ratio=0.3),
}
TALKS = {
    "single": Conversation(),
    "talk": Conversation(num_turns=3.5, think=Think(mean_s=10.0), system_tokens=200, num_groups=4),
    "agent": Conversation(num_turns=6.0, think=Think(mean_s=2.0, variation_ratio=0.5), opening=Lognormal(900.0, 0.8)),
    "documents": Conversation(
        num_turns=1.5, num_documents=30, document_tokens=250, num_retrieved=3, document_zipf_factor=1.3,
        system_tokens=50, num_groups=3, group_zipf_factor=0.4,
    ),
}  # fmt: skip


def traffic() -> Iterator[tuple[str, object]]:
    """Requests that are drawn, cut and replayed."""
    for name, lengths in LENGTHS.items():
        shares = [quantile_tokens(lengths, one) for one in (0.01, 0.5, 0.9, 0.95, 0.99)]
        yield f"{name} lengths", [mean_tokens(lengths), *shares]
    shapes = list(LENGTHS.values())
    for place, (coming, arrivals) in enumerate(COMING.items()):
        for number, (talk, conversation) in enumerate(TALKS.items()):
            asked = Traffic(
                arrivals=arrivals, conversation=conversation, prompt=shapes[(place + number) % len(shapes)],
                output=shapes[(place + 2 * number + 1) % len(shapes)], num_requests=150,
                max_context=(0, 1500, 900)[(place + number) % 3],
            )  # fmt: skip
            yield f"{talk} {coming}", [
                or_refused(partial(describe, asked, 5)), expected_tokens(asked), asked.shares_prefixes,
                or_refused(lambda asked=asked: list(generate(asked, 7, 64))),
            ]  # fmt: skip
    for pause, talk in ((0.0, "talk"), (4.0, "single"), (4.0, "documents")):
        users = Users(num=5, think=Think(mean_s=pause, variation_ratio=0.7))
        asked = Traffic(users=users, conversation=TALKS[talk], num_requests=80)
        longer = or_refused(partial(users.most_sessions, 300.0))
        yield (
            f"users {pause:g} {talk}",
            [describe(asked, 3), longer, [*generate(asked, 3)]],
        )
    for speed, first, num in ((1.0, 0, 0), (2.0, 5, 0), (0.5, 0, 40)):
        replayed = Traffic(
            trace=TraceReplay(path=TRACE, speed_ratio=speed, first=first, sort=speed > 1, block_tokens=256),
            num_requests=num,
        )
        yield f"replayed {speed:g} {first} {num}", [describe(replayed), *generate(replayed, 0)]
    prompt, output = np.array([10, 700, 800, 799, 5000]), np.array([10, 100, 101, 1, 900])
    for most in (0, 800, 5000, 6000):
        yield f"cut to {most}", cut_to_context(prompt, output, most)


def calls() -> Iterator[tuple[str, object]]:
    for some in (models, passes, tokens, traffic):
        yield from some()
    yield from sampled("workload")


def test_figures_of_calls(update: bool) -> None:
    check_calls("workload", calls(), update)


def test_figures_of_questions(update: bool) -> None:
    check_questions("workload", update)
