"""A gateway's file says all that it means, and every problem of one that does not is said at once, with its line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog.document import parse
from datahall.errors import DocumentError, Problem
from datahall.serve.config.read import LIMITS, MODEL, PRICE, SERVER, TIMEOUTS, UPSTREAM, settings_of
from datahall.serve.config.settings import ModelSettings, Settings
from datahall.serve.ledger.key import Limits as KeyLimits

DAY = date(2026, 11, 18)
WHOLE = """
[server]
listen = "[::1]:9000"
auth = true
state = "here"
drain = "2 min"
body = "5 MB"
head_time = 3
connections = 50

[upstream.gpu-1]
url = "http://10.0.0.7:8000/v1"
concurrency = 64
health = "/health"
first_byte = "90s"

[upstream.hosted]
url = "https://api.example.com/v1"
key = "env:KEY"

[model."llama-3.1-8b"]
upstreams = ["gpu-1", { upstream = "hosted", model = "llama", cost = 0.2 }]
named = "meta-llama/Llama-3.1-8B-Instruct"
routing = "cost"
fallbacks = ["small"]
hedge = "500ms"
price = { input = 0.05, output = 0.08 }

[model.small]
upstreams = ["hosted"]
priced_as = "openai/gpt-4o"
"""
LEAST = """
[upstream.u]
url = "http://10.0.0.7"
[model.m]
upstreams = ["u"]
"""


def settings(text: str) -> Settings:
    return settings_of(parse(text, "gateway.toml"), DAY)


def problems(text: str) -> list[tuple[str, str]]:
    with pytest.raises(DocumentError) as wrong:
        settings(text)
    return [(one.where, f"{one.message}; {one.hint}") for one in wrong.value.problems]


def test_a_file_says_all_that_it_means() -> None:
    found = settings(WHOLE)
    server = found.server
    assert (server.host, server.port, server.drain_s, server.state) == ("::1", 9000, 120.0, "here")
    assert (server.limits.body_bytes, server.limits.head_s, server.limits.num_connections) == (
        5_000_000,
        3.0,
        50,
    )
    gpu, hosted = found.upstreams
    assert (gpu.name, gpu.most, gpu.health, gpu.timeouts.first_byte_s) == ("gpu-1", 64, "/health", 90.0)
    assert gpu.timeouts.total_s == 600.0
    assert hosted.key == "env:KEY"
    model, small = found.models
    assert [(one.upstream, one.model) for one in model.targets] == [
        ("gpu-1", "meta-llama/Llama-3.1-8B-Instruct"), ("hosted", "llama"),
    ]  # fmt: skip
    assert model.targets[1].cost_nano_usd == 200_000_000
    assert (model.routing, model.fallbacks, model.hedge_s) == ("cost", ("small",), 0.5)
    assert (model.price.input_nano_usd, model.price.cached_nano_usd) == (50_000_000, 50_000_000)
    assert small.price.input_nano_usd == 2_500_000_000


def test_what_a_file_leaves_out_is_as_it_usually_is() -> None:
    found = settings(LEAST)
    assert (found.server.host, found.server.port, found.server.has_auth) == ("127.0.0.1", 8080, True)
    assert found.models[0] == ModelSettings(name="m", targets=found.models[0].targets)


WRONG = {
    "an unknown table": ("[sever]\n" + LEAST, 1, "did you mean server"),
    "an unknown key": (LEAST + "hedged = 3", 6, "did you mean hedge"),
    "an unknown upstream": (LEAST.replace('["u"]', '["v"]'), 5, 'nothing is called "v"'),
    "an unknown fallback": (LEAST + 'fallbacks = ["n"]', 6, 'nothing is called "n"'),
    "itself as a fallback": (LEAST + 'fallbacks = ["m"]', 6, "stand in for itself"),
    "no url": (LEAST.replace("url =", "# url ="), 2, "has no url"),
    "no upstreams": (LEAST.replace("upstreams =", "# upstreams ="), 4, "one upstream or more"),
    "an upstream of no name": (LEAST.replace('["u"]', "[3]"), 5, "3 is no upstream"),
    "a url of another kind": (LEAST.replace("http:", "ftp:"), 3, "is no base URL"),
    "a url with a secret": (LEAST.replace("10.0.0.7", "u:p@10.0.0.7"), 3, "no user"),
    "where clouds keep credentials": (LEAST.replace("10.0.0.7", "169.254.169.254"), 3, "keep credentials"),
    "a secret in the file": (LEAST.replace("[model", 'key = "sk-1"\n[model'), 4, "named, not written"),
    "a wrong word": (LEAST + 'routing = "lateny"', 6, "did you mean latency"),
    "a wrong duration": (LEAST + 'deadline = "5 furlongs"', 6, 'e.g. "30s"'),
    "a duration of nothing": (LEAST + "deadline = 0", 6, "0 is not 0.001 to"),
    "a wrong count": (LEAST + "retries = 2.5", 6, "not a whole number"),
    "a truth for a count": (LEAST + "retries = true", 6, "not a whole number"),
    "hedging alone": (LEAST + 'hedge = "2s"', 6, "there is one upstream"),
    "routing alone": (LEAST + 'routing = "session"', 6, "there is one upstream"),
    "relief by nobody": (LEAST + "relief_at = 3", 6, "no model is the relief"),
    "cost without costs": (
        LEAST.replace("[model", '[upstream.v]\nurl = "http://b"\n[model').replace('["u"]', '["u", "v"]')
        + 'routing = "cost"',
        8,
        "no upstream has a cost",
    ),
    "a name of other letters": (LEAST.replace("[model.m]", '[model."é"]'), 4, "is no name"),
    "a negative price": (LEAST + "price = { input = -1 }", 6, "0 or more"),
    "two prices": (LEAST + 'price = {}\npriced_as = "openai/gpt-4o"', 7, "stands beside price"),
    "a price that nobody lists": (LEAST + 'priced_as = "nobody/nothing"', 6, "nothing"),
    "everybody": ('[server]\nlisten = "0.0.0.0:80"\nauth = false' + LEAST, 3, "anybody who reaches 0.0.0.0"),
    "a port of no number": ('[server]\nlisten = "localhost"' + LEAST, 2, "is no address"),
    "half a certificate": ('[server]\ncertificate = "c.pem"' + LEAST, 1, "a certificate has a key"),
    "a table of no table": ("server = 3\n" + LEAST, 1, "is no table"),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=WRONG)
def test_a_problem_names_its_line_and_what_to_write(text: str, line: int, message: str) -> None:
    assert [where for where, said in problems(text) if message in said] == [f"gateway.toml:{line}"]


def test_all_problems_are_said_in_the_order_of_their_lines() -> None:
    found = problems(
        '[server]\nlisten = 3\nauth = "no"\n[upstream.u]\nurl = ""\n[model.m]\nupstreams = ["v"]\nrouting = 1\n'
    )
    assert [int(where.rpartition(":")[2]) for where, _ in found] == [2, 3, 5, 7, 8]


VALUES = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5).map(repr), st.just('["u"]'),
    st.just('{ a = 1 }'), st.sampled_from(['"env:X"', '"1s"', '"/x"', '"env:"', "[]"]),
)  # fmt: skip
KEYS = st.sampled_from(
    ["upstreams", "named", "price", *SERVER, *LIMITS, *UPSTREAM, *TIMEOUTS, *MODEL, *PRICE]
)


@given(
    st.lists(st.tuples(st.sampled_from(["[server]", "[upstream.u]", "[model.m]"]), KEYS, VALUES), max_size=8)
)
def test_no_file_is_more_than_a_list_of_problems(lines: list[tuple[str, str, object]]) -> None:
    tables: dict[str, dict[str, object]] = {}
    for table, key, value in lines:
        tables.setdefault(table, {})[key] = str(value).lower() if isinstance(value, bool) else value
    text = "".join(
        f"{table}\n" + "".join(f"{key} = {value}\n" for key, value in rows.items())
        for table, rows in tables.items()
    )
    found: list[Problem] = []
    try:
        settings(text)
    except DocumentError as wrong:
        found = [*wrong.problems]
    assert all(one.where.startswith("gateway.toml") and one.message for one in found)


def test_an_upstream_may_be_a_server_of_other_models() -> None:
    found = settings(LEAST.replace('url = "http://10.0.0.7"', 'url = "http://10.0.0.7"\napi = "inference"'))
    assert found.upstreams[0].api == "inference"
    priced = settings(LEAST + "price = { call = 0.0002 }\n")
    assert priced.models[0].price.call_nano_usd == 200_000


def test_an_upstream_may_be_a_model_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "double.py"
    file.write_text("def predict(features):\n    return 2 * features\n")
    whole = LEAST.replace('url = "http://10.0.0.7"', f'file = "{file}"\nconcurrency = 4')
    found = settings(whole)
    (upstream,) = found.upstreams
    assert (upstream.file, upstream.api, upstream.most) == (str(file), "inference", 4)
    assert found.models[0].targets[0].model == "u"
    for wrong, problem in (
        ('url = "http://10.0.0.7"', "url does nothing here: the model is in the gateway's own process"),
        ('api = "openai"', "api does nothing here: the model is in the gateway's own process"),
    ):
        with pytest.raises(DocumentError) as refused:
            settings(whole.replace("concurrency = 4", wrong))
        assert problem in str(refused.value)
    with pytest.raises(DocumentError, match="there is no file"):
        settings(whole.replace("double.py", "nowhere.py"))


def test_customers_have_limits_that_their_keys_share() -> None:
    said = """
[customer.acme]
rpm = 10
tpm = 2000
parallel = 3
budget = "5USD/day"
[customer.other]
budget = "7USD"
"""
    assert settings(LEAST + said).customers == {
        "acme": KeyLimits(
            requests_per_minute=10,
            tokens_per_minute=2000,
            parallel=3,
            budget_nano_usd=5 * 10**9,
            period="day",
        ),
        "other": KeyLimits(budget_nano_usd=7 * 10**9, period="total"),
    }
    with pytest.raises(DocumentError) as found:
        settings(LEAST + said.replace('"5USD/day"', '"5 stones"').replace("rpm = 10", "rps = 1"))
    assert "is no budget" in str(found.value)
    assert 'nothing is called "rps" here' in str(found.value)
