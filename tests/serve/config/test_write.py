"""Settings that are written are read again as they were."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.serve.config.test_read import LEAST, WHOLE, settings

from datahall.serve.cache.exact import Bounds
from datahall.serve.config.settings import (
    ModelSettings,
    ServerSettings,
    Settings,
    TargetSettings,
    TelemetrySettings,
    UpstreamSettings,
)
from datahall.serve.config.write import written
from datahall.serve.http import Limits, Timeouts
from datahall.serve.ledger.money import Price

TOLD = '[telemetry]\nmetrics = "[::1]:9464"\nlog = "-"\ntraces_kept = "5 %"\n[cache]\n'
MOUNTED = '[upstream.own]\nfile = "{}"\n[model.other]\nupstreams = ["own"]\n'


def test_what_a_file_says_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "double.py"
    file.write_text("def predict(features):\n    return 2 * features\n")
    for text in (WHOLE, LEAST, LEAST + TOLD, LEAST + MOUNTED.format(file)):
        found = settings(text)
        assert settings(written(found)) == found


def test_what_is_as_usual_is_not_written() -> None:
    assert (
        written(settings(LEAST)) == '[upstream.u]\nurl = "http://10.0.0.7"\n\n[model.m]\nupstreams = ["u"]\n'
    )


NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)
WORDS = NAMES.filter(str.strip)
SECONDS = st.floats(0.001, 86400.0)
NANO_USD = st.integers(0, 10**12)
TARGETS = st.builds(TargetSettings, upstream=st.just("u"), model=WORDS, cost_nano_usd=NANO_USD)
MODELS = st.builds(
    ModelSettings,
    name=NAMES,
    targets=st.lists(TARGETS, min_size=1, max_size=2).map(tuple),
    num_retries=st.integers(0, 10),
    deadline_s=SECONDS,
    queue_s=st.floats(0.0, 86400.0),
    longest_tokens=st.integers(1, 1_000_000),
    most_waiting=st.integers(0, 10**9),
    price=st.builds(
        Price,
        input_nano_usd=NANO_USD,
        cached_nano_usd=NANO_USD,
        output_nano_usd=NANO_USD,
        call_nano_usd=NANO_USD,
    ),
)
UPSTREAMS = st.builds(
    UpstreamSettings,
    name=st.just("u"),
    url=st.just("http://10.0.0.7:8000/v1"),
    most=st.integers(0, 10**9),
    health=st.sampled_from(["", "/health"]),
    timeouts=st.builds(Timeouts, connect_s=SECONDS, total_s=SECONDS),
)
SERVERS = st.builds(
    ServerSettings,
    host=st.sampled_from(["127.0.0.1", "::1"]),
    port=st.integers(0, 65535),
    drain_s=SECONDS,
    limits=st.builds(Limits, body_bytes=st.integers(1, 2**33), head_s=SECONDS),
)


@given(SERVERS, UPSTREAMS, MODELS, st.none() | st.builds(Bounds, ttl_s=SECONDS), st.floats(0.0, 1.0))
def test_settings_are_read_as_they_were_written(
    server: ServerSettings,
    upstream: UpstreamSettings,
    model: ModelSettings,
    cache: Bounds | None,
    kept: float,
) -> None:
    said = Settings(
        server=server,
        telemetry=TelemetrySettings(kept_fraction=kept),
        cache=cache,
        upstreams=(upstream,),
        models=(model,),
    )
    assert settings(written(said)) == said
