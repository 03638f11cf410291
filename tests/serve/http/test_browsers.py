"""Where no key is asked for, a page of a browser that is not of this machine is not answered."""

from __future__ import annotations

import pytest
from tests.serve.http.talking import echo, running, said, serving

from datahall.serve.http import Request
from datahall.serve.http.browsers import guarded, is_from_elsewhere

HERE = (
    {},
    {"host": "127.0.0.1:8080"},
    {"host": "localhost"},
    {"host": "[::1]:8080"},
    {"host": "LocalHost:80", "origin": "http://localhost:3000"},
    {"host": "app.localhost:80", "origin": "http://127.0.0.1:3000"},
)
ELSEWHERE = (
    {"host": "evil.example"},
    {"host": "evil.example:8080", "origin": "http://evil.example:8080"},
    {"host": "127.0.0.1.evil.example"},
    {"host": "localhost.evil.example"},
    {"host": "[::1"},
    {"host": "127.0.0.1:8080", "origin": "https://evil.example"},
    {"host": "127.0.0.1:8080", "origin": "null"},
    {"host": "127.0.0.1:8080", "origin": ""},
)


def elsewhere(headers: dict[str, str], host: str = "127.0.0.1") -> bool:
    return is_from_elsewhere(Request("POST", "/", headers=headers), host)


@pytest.mark.parametrize("headers", HERE)
def test_who_is_of_this_machine_is_answered(headers: dict[str, str]) -> None:
    assert not elsewhere(headers)


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_who_is_not_is_refused(headers: dict[str, str]) -> None:
    assert elsewhere(headers)


def test_an_address_of_many_names_takes_pages_of_its_own_alone() -> None:
    assert not elsewhere({"host": "gpu-1:9464"}, "0.0.0.0")
    assert not elsewhere({"host": "gpu-1:9464", "origin": "http://gpu-1:9464"}, "0.0.0.0")
    assert elsewhere({"host": "gpu-1:9464", "origin": "http://evil.example"}, "0.0.0.0")


@running
async def test_a_guarded_handler_is_not_asked() -> None:
    async with serving(guarded(echo, "127.0.0.1")) as server:
        request = b"GET /x HTTP/1.1\r\nConnection: close\r\nHost: %b\r\n\r\n"
        assert (await said(server, request % b"evil.example")).startswith(b"HTTP/1.1 403 ")
        assert (await said(server, request % b"localhost")).endswith(b"GET /x  ")
