"""A model drafts for a larger one whose tokens it knows; what never fits is refused before its steps are priced."""

from __future__ import annotations

from pathlib import Path

import pytest

import datahall as dh
from datahall.cli.main import run as command
from datahall.errors import InfeasibleError, ScenarioError
from datahall.inference.closed_form import capacity


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        ("qwen3-32b", "what one drafts the other does not know"),
        ("qwen3-0.6b", "what one drafts the other does not know"),
        ("llama-3.1-405b", "drafting takes longer than it saves"),
        ("llama-3.1-8b", "drafting takes longer than it saves"),
    ],
)
def test_a_draft_with_other_tokens_or_as_many_weights_is_refused_by_every_verb(
    draft: str, words: str
) -> None:
    for verb in (dh.simulate_serve, dh.plan_serve, dh.show_techniques):
        with pytest.raises(ScenarioError, match=words) as caught:
            verb("llama-3.1-8b", rate=5, draft=draft)
        assert caught.value.field == "draft"


def test_a_file_that_names_such_a_draft_is_refused_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "service.toml"
    path.write_text(
        'version = 1\nask = "simulate serve"\nmodel = "llama-3.1-8b"\n[traffic]\nrate = 5\n'
        '[deployment]\ndraft = "qwen3-32b"\n',
        encoding="utf-8",
    )
    assert command(["simulate", "serve", str(path)]) == 2
    assert "the other does not know" in capsys.readouterr().err


@pytest.mark.parametrize(("model", "draft"), [("llama-3.1-70b", "llama-3.2-1b"), ("qwen3-32b", "qwen3-0.6b")])
def test_a_smaller_model_of_the_family_drafts(model: str, draft: str) -> None:
    assert (
        dh.simulate_serve(model, rate=0.5, requests=50, chip="h200", tp=4, draft=draft).results[
            "num_finished"
        ]
        == 50
    )


def test_what_does_not_fit_is_refused_before_its_steps_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million sequences need 2 TB for activations: a table of steps for as many takes seconds, and tells nothing."""

    def priced(_: object) -> None:
        raise AssertionError("priced")

    monkeypatch.setattr(capacity, "price_steps", priced)
    with pytest.raises(InfeasibleError, match=r"2\.234 TB are missing"):
        dh.plan_serve("llama-3.1-8b", rate=5, max_sequences=1_000_000, chips=["h100-sxm"])
    with pytest.raises(InfeasibleError, match="are missing"):
        dh.show_techniques("llama-3.1-8b", rate=5, chip="h100-sxm", max_sequences=1_000_000)
