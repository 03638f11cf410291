"""Nothing that was said is ignored without a word: it acts, it is refused, or a note says that it does nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.first_look.conftest import Run

REFUSED = (
    # the command, and what the error must name
    ("simulate serve llama-3.1-8b --rate 1 --disaggregated prefill=1xh200,decode=2xh200 --replicas 3", "--replicas"),
    ("show collective all-reduce --on fat-tree --chips 64 --size 1GB --nic 0", "--nic"),
    ("simulate train llama-3.1-8b --chips 64 --nic 0", "--nic"),
    ("show collective all-reduce --on fat-tree --chips 64 --size 1GB --domain 0", "--domain"),
    ("plan train llama-3.1-8b --tokens 1T --chips 64 --domain 0", "--domain"),
    ("simulate fabric --on fat-tree --chips 64 --domain 0 --job collective=all-reduce,ranks=64,size=1MB", "--domain"),
    ("simulate serve llama-3.1-8b --rate 1 --cold-start 3s", "--cold-start"),
    ("simulate serve llama-3.1-8b --rate 1 --patience 3s", "--patience"),
    ("simulate serve llama-3.1-8b --rate 1 --num-draft 3", "--num-draft"),
    ("simulate serve llama-3.1-8b --rate 1 --acceptance 60%", "--acceptance"),
    ("plan serve llama-3.1-8b --rate 1 --num-draft 3", "--num-draft"),
    ("simulate serve llama-3.1-8b --rate 1 --adapter-rank 3", "--adapter-rank"),
    ("simulate serve llama-3.1-8b --rate 1 --draft mtp", "--draft"),
    ("plan serve llama-3.1-70b --rate 1 --draft mtp", "--draft"),
    ("show techniques qwen3-30b-a3b --rate 1 --draft mtp", "--draft"),
    ("show chip h100 --json -o x.html", "--json"),
    ("plan serve llama-3.1-8b --rate 1 --json -o x.md", "--json"),
    ("show collective all-reduce --chips 64 --size 1GB --oversubscription 2:1", "--oversubscription"),
    ("simulate serve llama-3.1-8b --rate 1 --users 5", "--users"),
    ("simulate train llama-3.1-8b --chips 64 --slow-by 20%", "--slow-by"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "named"), REFUSED)
def test_what_would_do_nothing_is_refused_by_name(line: str, named: str, datahall: Run) -> None:
    done = datahall(*shlex.split(line))
    assert done.code == 2
    assert named in done.err
    assert not done.out


def mean_prompt(datahall: Run, line: str) -> float:
    done = datahall(*shlex.split(line), "--json")
    results = json.loads(done.out)["results"]
    return float(results["prompt_tokens_per_s"] / results["requests_per_s"])


@pytest.mark.parametrize("preset", ["azure-conversation", "lmsys-chat"])
def test_lengths_beside_a_preset_take_its_place(preset: str, datahall: Run) -> None:
    line = f"simulate serve llama-3.1-8b --rate 1 --requests 300 --traffic {preset}"
    own = mean_prompt(datahall, f"{line} --isl 300 --spread 0")
    assert own == pytest.approx(300, rel=0.01)
    assert mean_prompt(datahall, line) != pytest.approx(own, rel=0.1)


def test_lengths_beside_a_preset_are_said(datahall: Run) -> None:
    done = datahall(
        *shlex.split(
            "simulate serve llama-3.1-8b --rate 1 --requests 50 --traffic azure-conversation --isl 300"
        )
    )
    said = " ".join(done.out.split())
    assert "azure-conversation with its own isl" in said
    assert "requests of 300 tokens in" in said


@pytest.mark.parametrize("verb", ["show chip h100", "plan serve llama-3.1-8b --rate 1", "catalog chips"])
def test_a_catalogue_that_cannot_be_read_is_said(verb: str, datahall: Run, tmp_path: Path) -> None:
    done = datahall(*shlex.split(verb), "--catalog", str(tmp_path / "gone"))
    assert done.code == 2
    assert "--catalog" in done.err


def test_a_catalogue_with_a_broken_file_is_said(datahall: Run, tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_bytes(b"[chip\xff\xfe")
    done = datahall("show", "chip", "h100", "--catalog", str(tmp_path))
    assert done.code == 2
    assert "chip.toml" in done.err


def test_autoscaling_by_flag_has_its_table(datahall: Run) -> None:
    line = "simulate serve llama-3.1-8b --rate 20 --requests 500 --autoscale 1..4 --cold-start 10s"
    assert "autoscaling" in datahall(*shlex.split(line)).out


@pytest.mark.parametrize("more", ["--turns 3 --think 2s", "--system 2000"])
def test_prefix_hits_are_said_where_prompts_are_shared(more: str, datahall: Run) -> None:
    """Not in JSON alone."""
    line = f"simulate serve llama-3.1-8b --rate 2 --requests 200 --prefix-caching {more}"
    done = datahall(*shlex.split(line))
    results = json.loads(datahall(*shlex.split(line), "--json").out)["results"]
    assert results["prefix_hit_tokens"] > 0
    assert "prefix" in done.out
