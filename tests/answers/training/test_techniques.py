"""`show training-techniques`: what it says holds together, of formats a chip has, files, sites and prices."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.answers.claims import garbled, unfounded

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import ask, ask_document
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog, document
from datahall.errors import ScenarioError

SHELF = Catalog(user=False)
JOB = {"model": "llama-3.1-8b", "chips": 32, "global_batch": 64}


def asked(**said: object) -> Answer:
    return answer_of(ask("show training-techniques", {**JOB, **said}, catalog=SHELF))  # type: ignore[dict-item]


def row(answer: Answer, table: int, name: str) -> dict[str, object]:
    found = [one for one in answer.tables[table].records() if next(iter(one.values())) == name]
    assert len(found) == 1
    return dict(found[0])


QUESTIONS = {
    "searched": {},
    "laid out": {"tp": 2, "pp": 4, "vpp": 2},
    "experts": {"model": "qwen3-30b-a3b", "ep": 8},
    "sites": {"sites": 8, "wan": "1 GB/s", "dp": 32},
    "no replicas to spread": {"tp": 8, "dp": 4, "sites": 3},
    "a chip without bf16": {"chip": "v100-sxm2-16gb", "model": "llama-3.2-1b"},
    "a chip without fp32": {"chip": "tpu-v5p", "on": "torus"},
    "nobody's price": {"chip": "tpu-v7x", "on": "torus"},
    "a fabric": {"on": "fat-tree", "chips": 128, "oversubscription": "3:1"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_it_says_follows_from_what_is_under_it(name: str) -> None:
    answer = asked(**QUESTIONS[name])
    assert unfounded(answer) == []
    said = [answer.headline, answer.binding, *answer.notes]
    said += [
        str(cell) for table in answer.tables for line in table.rows for cell in line if isinstance(cell, str)
    ]
    assert not [found for text in said for found in garbled(text)]


def test_a_chip_without_bf16_goes_to_fp16() -> None:
    answer = asked(**QUESTIONS["a chip without bf16"])
    assert "--precision fp16" in answer.next_commands[0] or 'precision="fp16"' in answer.next_commands[0]
    assert row(answer, 0, "fp8")["remark"] == "NVIDIA V100 SXM2 16 GB does not multiply FP8"


def test_the_next_command_is_the_step_at_the_top() -> None:
    for said in ({}, {"tp": 2, "pp": 4, "vpp": 2}):
        answer = asked(**said)
        words = answer.next_commands[0].removeprefix("datahall simulate train llama-3.1-8b ").split()
        given = {
            flag[2:].replace("-", "_"): value for flag, value in zip(words[::2], words[1::2], strict=True)
        }
        again = answer_of(ask("simulate train", {"model": "llama-3.1-8b", **given}, catalog=SHELF))
        assert again.results["step_s"] == pytest.approx(answer.results["step_s"])
        assert again.results["mfu_fraction"] == pytest.approx(answer.results["mfu_fraction"])


def test_the_cost_is_steps_of_chips_at_their_price() -> None:
    answer = asked(tokens="2T", price=2.0)
    steps = 2e12 / (64 * 8192)
    step_s = float(answer.results["step_s"])  # type: ignore[arg-type]
    assert answer.results["cost_usd"] == pytest.approx(32 * steps * step_s / 3600 * 2.0)


def test_one_question_has_one_answer_however_it_is_asked(tmp_path: Path) -> None:
    answer = asked(sites=4)
    by_function = dh.show_training_techniques(
        "llama-3.1-8b", chips=32, global_batch=64, sites=4, catalog=SHELF
    )
    by_json = ask_document(answer.question, catalog=SHELF)
    path = tmp_path / "ladder.toml"
    path.write_text(
        'version = 1\nask = "show training-techniques"\nmodel = "llama-3.1-8b"\n'
        "[training]\nglobal_batch = 64\n[fabric]\nchips = 32\n[sites]\nsites = 4\n",
        encoding="utf-8",
    )
    by_file = answer_of(ask("show training-techniques", document=document.read(path), catalog=SHELF))
    for other in (by_function, by_json, by_file):
        assert other.results == answer.results
        assert other.tables == answer.tables


def test_what_cannot_be_spread_over_sites_says_why() -> None:
    answer = asked(**QUESTIONS["no replicas to spread"])
    assert row(answer, 2, "3 sites, every step")["published"] == "4 replicas do not divide over 3 sites"
    assert "sites does nothing here: 4 replicas do not divide over 3 sites" in answer.notes
    assert "local_step_s" not in answer.results


def test_a_layout_that_cannot_run_is_refused() -> None:
    with pytest.raises(ScenarioError, match="dp 3"):
        asked(dp=3)
