"""What a scraper reads is what was counted, and what is shipped asks for nothing else."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.telemetry.exposition import shown
from tests.serve.telemetry.requests import told

from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.ledger.money import Usage
from datahall.serve.telemetry.instruments import MOST_KEYS, Instruments
from datahall.serve.telemetry.metrics import OTHER, Counter, Histogram, exposed
from datahall.serve.telemetry.readings import of_cache, of_process
from datahall.serve.telemetry.shipped import ALERTS, DASHBOARD, shipped
from datahall.serve.telemetry.telemetry import Telemetry


def read(page: bytes, name: str, **labels: str) -> float:
    (found,) = (
        line.value
        for line in shown(page.decode())
        if line.name == name and labels.items() <= line.labels.items()
    )
    return found


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5, unique=True))
def test_labels_of_any_text_come_back(labels: list[str]) -> None:
    counter = Counter("x_total", "X.", ("a", "b"))
    for number, label in enumerate(labels):
        counter.of(label, "b").value = number
    lines = shown(exposed([counter]).decode("utf-8"))
    assert {line.labels["a"]: line.value for line in lines} == {label: n for n, label in enumerate(labels)}


def test_labels_are_escaped() -> None:
    counter = Counter("x_total", "X.", ("a",))
    counter.of('a"b\\c\nd').value += 2
    (found,) = shown(exposed([counter]).decode())
    assert found == ("x_total", {"a": 'a"b\\c\nd'}, 2.0)


@given(st.lists(st.floats(0, 10)))
def test_a_histogram_counts_what_is_at_most_each_bound(values: list[float]) -> None:
    histogram = Histogram("x_seconds", "X.", (0.5, 1.0, 5.0), ("a",))
    for value in values:
        histogram.of("b").observe(value)
    lines = {line.labels.get("le", line.name): line.value for line in shown(exposed([histogram]).decode())}
    if values:
        assert [lines[bound] for bound in ("0.5", "1.0", "5.0", "+Inf")] == [
            len([value for value in values if value <= bound]) for bound in (0.5, 1.0, 5.0, float("inf"))
        ]
        assert lines["x_seconds_count"] == len(values)
        assert lines["x_seconds_sum"] == pytest.approx(sum(values))


def test_a_request_counts_once_in_each() -> None:
    seen = Instruments()
    seen.count(told())
    seen.count(
        told(result="cached", usage=Usage(), charged_nano_usd=0, saved_nano_usd=2_000_000_000, num_attempts=0)
    )
    page = seen.exposed()
    assert read(page, "datahall_requests_total", route="chat", model="small", result="answered") == 1
    assert read(page, "datahall_requests_total", result="cached") == 1
    assert [
        read(page, "datahall_tokens_total", kind=kind) for kind in ("prompt", "cached", "completion")
    ] == [100, 40, 11]
    assert read(page, "datahall_charged_usd_total") == pytest.approx(0.0015)
    assert read(page, "datahall_saved_usd_total") == pytest.approx(2.0)
    assert read(page, "gen_ai_server_request_duration_seconds_sum") == pytest.approx(0.23)
    assert read(page, "gen_ai_server_time_to_first_token_seconds_sum") == pytest.approx(0.03)
    assert read(page, "gen_ai_server_time_per_output_token_seconds_sum") == pytest.approx(0.02)
    assert read(page, "datahall_key_requests_total", key="team", customer="acme") == 2


def test_names_that_anybody_makes_up_are_no_labels() -> None:
    seen = Instruments()
    for number in range(50):
        seen.count(
            told(result="refused", status=404, code="model_not_found", model="", served="", key=f"k{number}")
        )
    page = seen.exposed()
    assert read(page, "datahall_refused_total", code="model_not_found") == 50
    assert b"datahall_requests_total{" not in page


def test_keys_beyond_the_most_are_shown_together() -> None:
    seen = Instruments()
    for number in range(MOST_KEYS + 30):
        seen.count(told(key=f"key-{number}"))
    lines = [line for line in shown(seen.exposed().decode()) if line.name == "datahall_key_requests_total"]
    assert len(lines) == MOST_KEYS + 1
    assert sum(line.value for line in lines) == MOST_KEYS + 30
    assert {line.value for line in lines if line.labels["key"] == OTHER} == {30}


def whole_page() -> str:
    """Every metric that a gateway may show."""
    telemetry = Telemetry(readings=(*of_cache(ExactCache(Bounds())), *of_process()))
    telemetry.tell(told())
    telemetry.tell(told(result="refused", model="", code="invalid_api_key"))
    telemetry.stop()
    return telemetry.instruments.exposed().decode()


def names() -> set[str]:
    page = whole_page()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    return {name + suffix for name, kind in kinds.items() for suffix in suffixes.get(kind, ("",))} | {
        "datahall_open_requests", "datahall_ledger_unwritten", "datahall_upstream_ready",  # of a whole gateway
    }  # fmt: skip


def asked(expression: str) -> set[str]:
    """The names of metrics in a query."""
    bare = re.sub(r'"[^"]*"|\{[^{}]*\}|\[[^\]]*\]', "", expression)
    return {word for word in re.findall(r"\b[a-z]\w*_\w+\b", bare)} - {
        "avg_over_time",
        "histogram_quantile",
        "label_values",
    }


def queries() -> list[str]:
    board = json.loads(shipped(DASHBOARD))
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found += [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    return found + re.findall(r"expr: (.+)$", shipped(ALERTS), re.M)


def test_dashboard_and_alerts_ask_for_what_there_is() -> None:
    assert len(queries()) > 25
    assert set().union(*map(asked, queries())) <= names()


def test_labels_that_are_asked_for_are_those_of_their_metrics() -> None:
    lines = list(shown(whole_page()))
    for query in queries():
        for name, inside in re.findall(r"(\w+)\{([^{}]*)\}", query):
            labels = set(re.findall(r"(\w+)=", inside))
            assert any(line.name == name and labels <= set(line.labels) for line in lines), (name, labels)


def test_every_metric_says_what_it_is_in_a_base_unit() -> None:
    page = whole_page()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))
    about = dict(re.findall(r"^# HELP (\S+) (.+)$", page, re.M))
    assert set(kinds) == set(about)
    assert all(text.endswith(".") for text in about.values())
    for name, kind in kinds.items():
        assert (kind == "counter") == name.endswith("_total")
        assert not re.search(r"_(ms|milliseconds|kb|mb|minutes)(_|$)", name)


def test_a_streamed_answer_of_one_token_has_no_time_a_token() -> None:
    instruments = Instruments()
    instruments.count(told(usage=Usage(5, 0, 1)))
    assert (
        read(instruments.exposed(), "gen_ai_server_time_per_output_token_seconds_count", model="small") == 0
    )
