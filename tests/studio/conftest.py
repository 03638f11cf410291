"""A studio that runs and a browser before it, once for all tests of a process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.studio.served import started

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def studio_url() -> Iterator[str]:
    """Where a studio of two processes listens."""
    with started(2) as (_, url):
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium; without one the tests that need it are skipped, but not in CI."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("no Chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, studio_url: str) -> Iterator[Any]:
    """A fresh page; whatever it asked of others or complained about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    said: list[str] = []
    made.on(
        "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
    )
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on(
        "request",
        lambda request: (
            said.append(request.url) if not request.url.startswith((studio_url, "data:", "blob:")) else None
        ),
    )
    made.set_default_timeout(60_000)
    yield made
    context.close()
    assert not said
