"""Help, terms, pages and the Python face say what they are about, in the field's words."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import pytest
from tests.first_look.conftest import Run
from tests.first_look.figures import words_of

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS
from datahall.catalog import Catalog

DOCS = Path(__file__).parents[2] / "docs"
IDIOM = re.compile(
    r"\b(?:played|carries the|ways that lost|the kit|the shelf|first token in .* and the others every)\b",
    re.IGNORECASE,
)
SLIPS = re.compile(r"\d%|\b1 do not\b|\bon A \d|\+1 chips|\b1 chips\b|\b1 replicas\b|\b1 requests\b(?!/)")
TERMS = [
    "RDMA",
    "PFC",
    "OCS",
    "ECMP",
    "torus",
    "bisection",
    "bubble",
    "exposed",
    "ZeRO",
    "replica",
    "disaggregation",
]
MORE = ["TTFT", "TPOT", "ITL", "E2E", "goodput", "MFU", "HFU", "algbw", "busbw", "ETTR", "PUE"]


@pytest.mark.parametrize("term", [*TERMS, *MORE])
def test_a_term_is_explained(term: str, datahall: Run) -> None:
    done = datahall("explain", term)
    assert done.code == 0
    assert len(done.out.split()) > 12


@pytest.mark.parametrize("group", sorted({verb.name.split()[0] for verb in VERBS if " " in verb.name}))
def test_help_of_a_group_names_all_of_its_questions(group: str, datahall: Run) -> None:
    for words in ((group, "--help"), ("--help",)):
        text = datahall(*words).out
        questions = [verb.name.split()[1] for verb in VERBS if verb.name.startswith(f"{group} ")]
        shown = words[0] != "--help" or group in ("plan", "simulate", "show")
        assert all(re.search(rf"\b{re.escape(name)}\b", text) for name in questions) or not shown


def test_help_of_validate_knows_every_domain(datahall: Run) -> None:
    text = datahall("validate", "--help").out
    for domain in ("kernels", "collectives", "training", "inference"):
        assert domain in text


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_every_input_says_what_it_is(verb: str) -> None:
    """No "Which.", "Their rank.", "Of who is slow, and when."."""
    for field in form_of(verb).fields.values():
        words = field.kind.help.rstrip(".").split()
        assert len(words) >= 3, f"{field.name}: {field.kind.help}"
        assert words[0] not in {"Which", "Their", "Of", "Its"}, f"{field.name}: {field.kind.help}"


@pytest.mark.parametrize(
    "line",
    [
        "simulate serve llama-3.1-8b --rate 1 --requests 50",
        "simulate train llama-3.1-8b --chips 64 --tp 2",
        "show fit llama-3.1-8b --chip h200",
        "show collective all-reduce --chips 64 --size 1GB",
    ],
)
def test_a_question_can_be_explained(line: str, datahall: Run) -> None:
    done = datahall("explain", *shlex.split(line))
    assert done.code == 0
    assert "the chain behind it" in done.out


ASKED = {
    "plan_serve": {"model": "llama-3.1-8b", "rate": 1, "chips": "h100-sxm"},
    "simulate_serve": {"model": "llama-3.1-8b", "rate": 1, "requests": 50},
    "show_techniques": {"model": "llama-3.1-8b", "rate": 1},
    "show_fabric": {"topologies": "tree", "chips": 64},
    "show_fit": {"model": "llama-3.1-8b", "chip": "h200"},
    "simulate_train": {"model": "llama-3.1-8b", "chips": 8, "tp": 8},
}


@pytest.mark.parametrize("verb", ASKED)
def test_sentences_have_no_slips_and_no_idiom(verb: str, shelf: Catalog) -> None:
    text = words_of(getattr(dh, verb)(**ASKED[verb], catalog=shelf))
    assert not SLIPS.findall(text)
    assert not IDIOM.findall(text)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.function)
def test_a_function_documents_what_it_takes(verb: object) -> None:
    function = getattr(dh, verb.function)  # type: ignore[attr-defined]
    named = [name for name in inspect.signature(function).parameters if name not in {"catalog", "file"}]
    assert not any(name in {"asked", "args", "kwargs"} for name in named)
    assert all(re.search(rf"^\s*\**{name}\b", function.__doc__ or "", re.MULTILINE) for name in named)


def test_an_answer_is_short_in_a_shell_and_can_be_kept(shelf: Catalog, tmp_path: Path) -> None:
    found = dh.show_fit("llama-3.1-8b", chip="h200", catalog=shelf)
    assert isinstance(found, Answer)
    assert len(repr(found)) < 1000
    assert found.headline in found.to_json()
    found.save(tmp_path / "fit.html")
    assert found.headline.split(":")[0] in (tmp_path / "fit.html").read_text()


@pytest.mark.parametrize("wrong", [["llama-3.1-8b"], None, 3, {"name": "x"}, object()])
def test_a_wrong_type_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(dh.DatahallError, match="model"):
        dh.show_fit(wrong)
    with pytest.raises(dh.DatahallError, match="tp"):
        dh.show_fit("llama-3.1-8b", tp=["a"] if wrong is None else wrong if wrong != 3 else "three")


@pytest.mark.parametrize("page", sorted(path.name for path in (DOCS / "howto").glob("*.md")))
def test_every_how_to_is_linked_from_somewhere(page: str) -> None:
    others = [path for path in (*DOCS.rglob("*.md"), DOCS.parent / "README.md") if path.name != page]
    assert any(page in path.read_text() for path in others)


def test_what_is_said_of_limits_is_so() -> None:
    """Block-scaled FP8 has kernels of its own; the page must not say that it has none."""
    text = (DOCS / "limits.md").read_text()
    assert "weight_block_size" in text
    assert not re.search(r"block-scaled[^.]*\bnot modelled", text)


def test_what_is_said_of_scaling_is_what_is_shown() -> None:
    """A step that gets longer stands under a sentence that says so, and under no other."""
    section = (DOCS / "synchronisation.md").read_text().partition("negative scaling")[2].partition("\n## ")[0]
    gains = [float(one) for one in re.findall(r"([\d.]+) times as fast as with half", section)]
    assert len(gains) > 3
    assert gains == sorted(gains, reverse=True)
    assert (min(gains) < 1) == ("makes the step longer" in section)


def test_a_table_of_keys_stands_beside_a_fabric_file() -> None:
    """What a scenario of a fabric may say is a page away."""
    text = (DOCS / "howto" / "simulate-a-fabric.md").read_text()
    assert "| key" in text or "reference.md#simulate-fabric" in text


def test_the_documents_are_not_given_words() -> None:
    """They say neither that an H200 has 40 to 80 GB nor that a 70B model is one H100's."""
    text = (DOCS / "seeds.md").read_text()
    assert not re.search(r"H200[^\n]{0,40}40.80 GB", text)
    assert "350,000" not in text or "16,384" not in text[text.index("350,000") :][:400]


def test_all_claims_of_the_documents_are_judged_or_listed() -> None:
    text = (DOCS / "seeds.md").read_text()
    counted = [int(number) for number in re.findall(r"(\d+) claims", text)]
    assert any(number >= 149 for number in counted)


CHARTS = {
    "show_fabric": {"topologies": "fat-tree", "chips": 64},
    "show_techniques": {"model": "llama-3.1-8b", "rate": 1},
    "validate": {"domain": "collectives"},
}


@pytest.mark.parametrize("verb", CHARTS)
def test_an_answer_with_something_to_draw_draws_it(verb: str, shelf: Catalog) -> None:
    found = getattr(dh, verb)(**CHARTS[verb], catalog=shelf)
    assert found.charts


def test_an_explanation_as_a_page_folds(datahall: Run, tmp_path: Path) -> None:
    path = tmp_path / "chain.html"
    done = datahall(*shlex.split(f"explain show fit llama-3.1-8b --chip h200 -o {path}"))
    assert done.code == 0
    assert path.read_text().count("<details") > 5


def test_a_page_fits_a_phone(shelf: Catalog, tmp_path: Path) -> None:
    """It says that it is as wide as the screen, and what is wider scrolls by itself."""
    dh.show_fit("llama-3.1-8b", chip="h200", catalog=shelf).save(tmp_path / "fit.html")
    text = (tmp_path / "fit.html").read_text()
    assert "width=device-width" in text
    assert "overflow-x" in text
