"""Upstreams are asked how they are; what cannot be read changes nothing, and who does not answer is not well."""

from __future__ import annotations

from random import Random

import pytest
from tests.serve.http.talking import running, serving

from datahall.serve.http import Client, Exchange, Origin
from datahall.serve.upstreams.probe import probe, read_gauges
from datahall.serve.upstreams.upstream import Upstream

VLLM = b"""# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 5e-1
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
"""


@pytest.mark.parametrize(
    ("page", "gauges"),
    [
        (VLLM, (7.0, 0.5)),
        (b"sglang:num_queue_reqs{} 2\nsglang:token_usage{} 0.1\n", (2.0, 0.1)),
        (b"vllm:num_requests_waiting{} many\n", (0.0, 0.0)),
        (b"\xff\x00", (0.0, 0.0)),
    ],
)
def test_gauges_are_read_from_pages_of_engines(page: bytes, gauges: tuple[float, float]) -> None:
    assert read_gauges(page) == gauges


@running
async def test_an_upstream_is_well_while_its_health_says_so() -> None:
    status = 200

    def answer(exchange: Exchange) -> None:
        exchange.send(status, VLLM if exchange.request.path == "/metrics" else b"")

    async with serving(answer) as server:
        client = Client(Origin("127.0.0.1", server.port))
        upstream = Upstream("u", client, Random(1), health_path="/health", metrics_path="/metrics")
        await probe(upstream)
        assert (upstream.is_well, upstream.num_waiting, upstream.kv_used_fraction) == (True, 7.0, 0.5)
        status = 503
        await probe(upstream)
        assert not upstream.is_well
        status = 200
        await probe(upstream)
        assert upstream.is_well
        client.close()
    await probe(upstream)
    assert not upstream.is_well
    client.close()
