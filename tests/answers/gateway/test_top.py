"""What is said of a gateway that runs, that does not, and that stops while it is looked at."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tests.serve.telemetry.requests import told
from tests.serve.top.instrumented import Pages

import datahall as dh
from datahall.answers.ask import views
from datahall.cli.delivery import Delivery
from datahall.cli.live import draw
from datahall.cli.main import run
from datahall.errors import DatahallError

Said = tuple[int, str]
BROKEN: Said = (0, "")


@contextmanager
def showing(pages: Sequence[Said]) -> Iterator[str]:
    """A server that answers with one page after another, the last of them again and again; yields its URL."""
    left = list(pages)

    class Shown(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = left.pop(0) if len(left) > 1 else left[0]
            if status:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())
            else:
                self.connection.close()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shown)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def two(began_s: float = 1.0) -> list[Said]:
    pages = Pages(began_s)
    return [(200, pages.after([told()])), (200, pages.after([told(), told(key="b")]))]


def test_one_view_has_figures_with_their_units() -> None:
    with showing(two()) as url:
        answer = dh.gateway_top(url, window="10ms")
    results = answer.results
    assert results["charged_usd"] == pytest.approx(0.0045)
    window_s, rate_per_s = results["window_s"], results["requests_per_s"]
    assert isinstance(window_s, float)
    assert isinstance(rate_per_s, float)
    assert rate_per_s * window_s == pytest.approx(2.0)
    tables = {table.title: table.records() for table in answer.tables}
    assert {row["key"] for row in tables["keys"]} == {"team", "b"}
    (acme,) = tables["customers"]
    assert (acme["customer"], acme["budget_usd"], acme["left_usd"]) == ("acme", 5.0, 4.5)
    assert (acme["requests_left"], acme["tokens_left_tokens"]) == (None, 900)
    assert {"ttft_p50_s", "whole_p99_s", "charged_usd", "charged_usd_per_hour"} <= tables["models"][0].keys()
    assert "refused" not in tables


def test_json_on_the_command_line_is_one_view(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(two()) as url:
        assert run(["gateway", "top", url, "--once", "--json", "--window", "10ms"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]["num_open"] == 5


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        ([(404, "no")], "answers 404"),
        ([(401, "no")], "answers 401: not with this key"),
        ([(200, "up 1\n")], "has no metrics of a gateway"),
        ([BROKEN], ""),
        ([*two()[:1], BROKEN], ""),
    ],
)
def test_what_shows_no_gateway_is_an_error(pages: list[Said], says: str) -> None:
    with showing(pages) as url, pytest.raises(DatahallError) as caught:
        dh.gateway_top(url, window="10ms")
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_nobody_at_a_url_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with showing([BROKEN]) as url:
        pass
    assert run(["gateway", "top", url]) == 2
    assert capsys.readouterr().err.startswith("error[serving]: cannot reach 127.0.0.1:")


def test_a_gateway_that_stops_and_comes_again_is_watched_on() -> None:
    with showing([*two(), BROKEN, *two(began_s=2.0)]) as url:
        seen = views("gateway top", {"url": url, "window": "10ms"})
        heads = [next(seen).headline for _ in range(4)]
    assert "open requests" in heads[0]
    assert "does not answer any more" in heads[1]
    assert "has been started again" in heads[2]
    assert "open requests" in heads[3]


def test_the_first_look_of_a_terminal_fails_as_any_other() -> None:
    with showing([BROKEN]) as url, pytest.raises(DatahallError):
        next(views("gateway top", {"url": url}))


def test_a_terminal_is_drawn_over_and_left_by_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    def until_left() -> Iterator[dh.Answer]:
        yield dh.Answer(kind="top", headline="one")
        yield dh.Answer(kind="top", headline="two")
        raise KeyboardInterrupt

    draw(until_left(), Delivery(form=None, output="", quiet=False, color=False))
    shown = capsys.readouterr().out
    assert shown.count("\x1b[2J") == 1
    assert shown.index("one\x1b[K") < shown.index("\x1b[Htwo\x1b[K")
