"""The studio in a real browser: each question opens with an answer, says what is wrong beside its input, and can be
shared by its address."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.studio.forms import ASKED

WAYS = Path(__file__).resolve().parents[2] / "studio-ui" / "src" / "views" / "ways.ts"
QUESTIONS = {
    verb: view
    for view, verbs in re.findall(r'view: "(\w+)".*?verbs: \[(.*?)\]', WAYS.read_text(encoding="utf-8"))
    for verb in re.findall(r'"([^"]+)"', verbs)
}
HEADLINE = ".answer h2.headline"
DRAWN = "() => [...document.querySelectorAll('.tree details[open]')].every((it) => it.children.length > 1)"


def at(url: str, view: str, **given: str) -> str:
    said = "&".join(f"{name}={quote(value)}" for name, value in given.items())
    return f"{url}/#/{view}" + (f"?{said}" if said else "")


def test_every_question_of_a_page_is_a_verb() -> None:
    assert {*QUESTIONS} <= {*ASKED}


def test_a_stranger_sees_the_golden_answer_at_once(page: Any, studio_url: str) -> None:
    page.goto(studio_url)

    golden = answer_of(ask("plan serve", {
        "model": "llama-3.1-70b", "users": "10000", "ttft": "1s", "tpot": "50ms",
        "chips": "h100-sxm,h200,b200,mi300x", "buy": "rent,own,spot,api",
    }))  # fmt: skip
    assert page.locator(HEADLINE).inner_text() == golden.headline
    assert page.locator("section h3").first.is_visible()
    assert page.locator("nav.ways a[aria-current=page]").inner_text() == "Plan"


@pytest.mark.parametrize("verb", QUESTIONS)
def test_every_question_opens_with_an_answer(page: Any, studio_url: str, verb: str) -> None:
    page.goto(at(studio_url, QUESTIONS[verb], verb=verb))

    page.wait_for_selector(f"{HEADLINE}, .refusal")
    assert page.locator(".refusal").count() == 0
    assert page.locator(HEADLINE).inner_text()
    assert page.locator(".asked input, .asked select").count() > 0


def test_what_is_changed_is_asked_and_stands_in_the_address(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)
    before = page.locator(HEADLINE).inner_text()

    page.get_by_label("tp", exact=True).fill("2")
    page.get_by_label("tp", exact=True).press("Enter")
    page.wait_for_function(
        "(before) => document.querySelector('.answer h2.headline').innerText !== before", arg=before
    )

    assert "tp=2" in page.url
    shared = page.url
    after = page.locator(HEADLINE).inner_text()
    page.goto("about:blank")
    page.goto(shared)
    page.wait_for_selector(HEADLINE)
    assert page.locator(HEADLINE).inner_text() == after


def test_what_is_wrong_stands_beside_its_input_and_the_last_answer_stays(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)

    page.get_by_label("chip", exact=True).fill("l40z")
    page.get_by_label("chip", exact=True).press("Enter")
    page.wait_for_selector(".refusal")

    assert "did you mean" in page.locator(".field.bad .wrong").inner_text()
    assert page.locator(HEADLINE).is_visible()


def test_what_is_typed_stays_while_answers_and_names_arrive(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)
    chip = page.get_by_label("chip", exact=True)

    with page.expect_response("**/api/forms/**/chip"):
        chip.focus()
        page.keyboard.type("x")
    page.wait_for_selector("datalist option", state="attached")
    page.keyboard.type("y")

    assert chip.input_value() == "l40sxy"


def test_a_slider_moves_the_answer(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "plan", verb="plan serve", model="llama-3.1-8b", users="100", chips="h100-sxm"))
    page.wait_for_selector(HEADLINE)
    before = page.locator(HEADLINE).inner_text()

    slider = page.get_by_label("users, as a slider")
    slider.evaluate("(it) => { it.value = 300; it.dispatchEvent(new Event('input', {bubbles: true})); }")
    page.wait_for_function(
        "(before) => document.querySelector('.answer h2.headline').innerText !== before", arg=before
    )

    assert "users=100&" not in page.url


def test_every_number_opens_its_chain_down_to_a_source(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)

    page.locator(".tree summary").first.wait_for()
    for _ in range(8):
        closed = page.locator(".tree details:not([open]) > summary")
        if not closed.count():
            break
        closed.first.click()
        page.wait_for_function(DRAWN)

    assert page.locator(".tree .leaf").count() > 3
    assert page.locator(".tree .rest a").count() > 0


def test_a_table_sorts_by_the_head_that_is_pressed(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "accuracy", verb="validate", domain="kernels"))
    page.wait_for_selector("table")
    table = page.locator("table").first

    def column() -> list[str]:
        found: list[str] = table.locator("tbody tr td:nth-child(2)").all_inner_texts()
        return found

    before = column()
    table.locator("th button").nth(1).click()
    numbers = [float(text.replace(",", "")) for text in column()]
    assert numbers == sorted(numbers, reverse=True)
    table.locator("th button").nth(1).click()
    table.locator("th button").nth(1).click()
    assert column() == before


def test_the_next_command_is_a_question_of_the_page(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)
    link = page.locator("ul.next a").first
    link.wait_for()

    said = link.inner_text()
    link.click()
    page.wait_for_function(
        "(said) => document.querySelector('.kicker')?.innerText && location.hash.includes('verb=')", arg=said
    )

    verb = re.search(r"verb=([\w+-]+)", page.url)
    assert verb
    assert said.startswith(f"datahall {verb[1].replace('+', ' ')}")


def test_the_answer_is_taken_along_as_a_file(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)

    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    said = json.loads(Path(download.value.path()).read_text())

    assert said["schema"] == "datahall/answer"
    assert said["headline"] == page.locator(HEADLINE).inner_text()


@pytest.mark.parametrize("view", dict.fromkeys(QUESTIONS.values()))
def test_nothing_is_wider_than_a_phone(page: Any, studio_url: str, view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(at(studio_url, view))
    page.wait_for_selector(HEADLINE)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_follows_the_theme_of_the_system(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "chip", verb="show chip", chip="h100-sxm"))
    page.wait_for_selector(HEADLINE)
    seen = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        seen.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert seen == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]


def test_it_is_used_by_keys_alone(page: Any, studio_url: str) -> None:
    page.goto(at(studio_url, "serving", verb="show fit", model="llama-3.1-8b", chip="l40s"))
    page.wait_for_selector(HEADLINE)

    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))

    assert {"A", "BUTTON", "INPUT", "SUMMARY"} <= reached
