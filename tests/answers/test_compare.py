"""Files, variants, saved answers, chips, models and clouds side by side: what is said is what each says alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.answers.claims import unfounded
from tests.cli.conftest import Run, _home, datahall

import datahall as dh
from datahall.answer import Answer, Quantity
from datahall.catalog import Catalog
from datahall.errors import DatahallError

__all__ = ["_home", "datahall"]
DAY = "2026-11-15"
FIT = 'version = 1\nask = "show fit"\nmodel = "llama-3.1-70b"\n[deployment]\nchip = "h200"\n'


@pytest.fixture
def fit(tmp_path: Path) -> str:
    path = tmp_path / "fit.toml"
    path.write_text(FIT)
    return str(path)


def rows(answer: Answer, title: str) -> dict[str, tuple[object, ...]]:
    (table,) = [one for one in answer.tables if one.title == title]
    return {str(row[0]): row[1:] for row in table.rows}


def test_a_variant_has_what_the_same_question_has(fit: str, shelf: Catalog) -> None:
    answer = dh.compare(fit, set="tp=4,precision=fp8", catalog=shelf)
    before = dh.show_fit("llama-3.1-70b", chip="h200", catalog=shelf).results
    after = dh.show_fit("llama-3.1-70b", chip="h200", tp=4, precision="fp8", catalog=shelf).results
    found = rows(answer, "every result")
    assert set(found) == {key for key, value in before.items() if value is not None}
    for key, (_, one, other, difference, *_) in found.items():
        assert (one, other) == (before[key], after[key])
        assert difference == after[key] - before[key]  # type: ignore[operator]
    assert set(rows(answer, "what is asked differently")) == {"TP", "precision"}
    assert unfounded(answer) == []


def test_a_flag_stands_over_a_variant_and_that_over_the_file(fit: str, shelf: Catalog) -> None:
    answer = dh.compare(fit, set=["tp=4,batch=2", "tp=8"], batch=3, catalog=shelf)
    asked = rows(answer, "what is asked differently")
    assert set(asked) == {"TP"}, "the batch is 3 for all, and not 2"
    assert asked["TP"][1:] == (Quantity(4.0, "count"), Quantity(8.0, "count"))
    one = dh.show_fit("llama-3.1-70b", chip="h200", tp=4, batch=3, catalog=shelf)
    assert rows(answer, "every result")["sequence_bytes"][2] == one.results["sequence_bytes"]


def test_a_thing_differs_in_nothing_from_itself(fit: str, shelf: Catalog) -> None:
    for things in ([fit, fit], ["h200", "h200-sxm"], ["llama-3.1-8b", "llama-3.1-8b"]):
        answer = dh.compare(things, as_of=DAY, catalog=shelf)
        assert "differ in nothing" in answer.headline
        assert answer.results["num_differing"] == 0


def test_an_answer_that_was_saved_is_read_and_not_asked_again(
    fit: str, tmp_path: Path, shelf: Catalog
) -> None:
    saved = tmp_path / "before.json"
    dh.show_fit("llama-3.1-70b", chip="h200", tp=8, catalog=shelf).save(saved)
    body = json.loads(saved.read_text())
    body["results"]["num_sequences"] = 12_345
    saved.write_text(json.dumps(body))
    answer = dh.compare([str(saved), fit], catalog=shelf)
    assert rows(answer, "every result")["num_sequences"][1] == 12_345
    assert rows(answer, "what is asked differently")["TP"][0] == Quantity(8.0, "count")


def test_chips_are_what_their_own_answers_say(shelf: Catalog) -> None:
    names = ["h100-sxm", "h200-sxm", "b200-sxm"]
    answer = dh.compare(names, model="llama-3.1-8b", batch=32, as_of=DAY, catalog=shelf)
    found = rows(answer, "every result")
    for place, name in enumerate(names, 1):
        own = dh.show_chip(name, catalog=shelf).results
        for key in ("memory_bytes", "memory_bytes_per_s", "peak_bf16_flop_per_s", "power_limit_w"):
            assert found[key][place] == own[key]
        for phase in ("decode", "prefill"):
            timed = dh.show_roofline(name, model="llama-3.1-8b", batch=32, phase=phase, catalog=shelf).results
            assert found[f"{phase}_tokens_per_s"][place] == timed["tokens_per_s"]
        assert found["peak_bf16_flop_per_j"][place] == own["peak_bf16_flop_per_s"] / own["power_limit_w"]  # type: ignore[operator]
    said = rows(answer, "what is said differently")
    assert all("2026-" in str(one) for one in said["lowest on demand offer"]), "a price has its date"
    assert set(answer.inputs) == {"things", "model", "batch", "as_of"}, "no default of another question"
    assert unfounded(answer) == []


def test_models_are_compared_on_a_chip(shelf: Catalog) -> None:
    answer = dh.compare(["llama-3.1-8b", "qwen3-8b"], chip="h200", as_of=DAY, catalog=shelf)
    assert {"weight_bytes", "decode_pass_s"} <= set(rows(answer, "every result"))


def test_who_has_no_price_is_named_and_costs_not_nothing(shelf: Catalog) -> None:
    answer = dh.compare(["aws", "gcp", "lambda", "coreweave"], chip="h100-sxm", as_of=DAY, catalog=shelf)
    assert any(note.startswith("not priced: gcp, coreweave") for note in answer.notes)
    prices = rows(answer, "what comes of it")["on demand price"]
    asked = dh.show_cost("h100-sxm", provider="aws", as_of=DAY, catalog=shelf).results
    assert prices[0] == Quantity(asked["rented_usd_per_hour"], "usd_per_hour")  # type: ignore[arg-type]


def test_more_than_stand_beside_each_other_stand_below(shelf: Catalog) -> None:
    names = [chip.name for chip in shelf.chips()][:9]
    (_, shown, *_) = dh.compare(names, as_of=DAY, catalog=shelf).tables
    assert len(shown.columns) <= 7
    assert [row[0] for row in shown.rows] == names


@pytest.mark.parametrize(
    ("things", "more", "words"),
    [
        (["h100-sxm"], {}, "only one thing"),
        (["h100-sxm", "llama-3.1-8b"], {}, "several kinds"),
        (["h100-sxm", "h10"], {}, '"h10" is no file'),
        (["aws", "gpc"], {"chip": "h100-sxm"}, '"gpc" is no file'),
        (["h100-sxm", "h200"], {"tp": 8}, "tp does nothing here"),
        (["h100-sxm", "h200"], {"chip": "b200"}, "chip does nothing here"),
        (["h100-sxm", "h200"], {"set": "tp=8"}, "changes a scenario file"),
        (["{fit}"], {}, "only one thing"),
        (["{fit}"], {"set": "tpp=8"}, "takes no tpp"),
        (["{fit}", "{fit}"], {"set": "tp=8"}, "variants of one file"),
        (["{fit}", "{other}"], {}, "asks show fit, .* asks show model"),
        (["{fit}", "{saved}"], {"tp": 8}, "is an answer, and is not asked again"),
        (["{fit}", "{config}"], {}, "neither a scenario nor a saved answer"),
        (["{fit}", "missing.toml"], {}, "missing.toml"),
        (["{fit}", "{old}"], {}, "1 problem"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    things: list[str], more: dict[str, object], words: str, fit: str, tmp_path: Path, shelf: Catalog
) -> None:
    texts = {
        "other.toml": 'version = 1\nask = "show model"\nmodel = "llama-3.1-8b"\n',
        "saved.json": dh.show_fit("qwen3-8b", chip="h200", catalog=shelf).to_json(),
        "config.json": '{"model_type": "llama"}',
        "old.json": '{"schema": "datahall/answer", "version": 1}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = {name.partition(".")[0]: str(tmp_path / name) for name in texts}
    named = [one.format(fit=fit, **files) for one in things]
    with pytest.raises(DatahallError, match=words):
        dh.compare(named, catalog=shelf, **more)  # type: ignore[arg-type]


def test_a_mistake_in_one_of_the_files_is_said_at_its_line(fit: str, tmp_path: Path, datahall: Run) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(FIT.replace("h200", "h9000"))
    outcome = datahall("compare", fit, str(wrong))
    assert outcome.code == 2
    assert f"{wrong}:5" in outcome.err


def test_words_that_follow_are_of_the_same_variant(fit: str, datahall: Run) -> None:
    apart = datahall("compare", fit, "--set", "tp=4", "precision=fp8", "--json")
    joined = datahall("compare", fit, "--set", "tp=4,precision=fp8", "--json")
    assert apart.code == 0
    assert json.loads(apart.out)["results"] == json.loads(joined.out)["results"]
    assert json.loads(apart.out)["results"]["num_sides"] == 2


def test_clouds_are_compared_by_the_usual_chip() -> None:
    one, other = (dh.compare(["aws", "lambda"], **chip) for chip in ({}, {"chip": "h100-sxm"}))
    assert one.results == other.results
