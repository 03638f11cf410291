"""Write into the documents what the program says.

    python docs/generate.py                     rewrite what is stale
    python docs/generate.py reference stub      of these pages alone
    python docs/generate.py --check             only name it; exit code 1
    python docs/generate.py --kernels FOLDER    also score the kernel tables in that folder, for calibration.md

A page goes by its path in docs/ without its ending (reference, howto/add-a-chip), or README, and __init__.pyi by stub.

Some files are written whole (validation.md, nomenclature.md, reference.md, roofline.svg, __init__.pyi), and some tables
between their markers.  In every page, each fence `text output` is filled with what the command or script above it
printed:

    sh                       commands, one per line; `exit=N` where they are meant to fail
    python                   all of a page are one script
    toml file=my-chip.toml   a file that stands in the page's folder while its commands run
    text output              what came out; `blocks=1-2` or `lines=1-9` keeps a part of it

A command that this file does not run itself (make, pip, git, curl, python FILE) is checked to exist.  A virtual
endpoint (datahall serve --virtual) runs until its page ends, and commands that ask 127.0.0.1:8080 ask it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import claims
import numpy as np

from datahall import show_roofline
from datahall.answer import Answer
from datahall.answers.functions import stub
from datahall.answers.reference import reference
from datahall.answers.term.term import terms
from datahall.catalog import load
from datahall.cli.main import run
from datahall.report.charts.chart import HEIGHT, WIDTH, svg
from datahall.units import fmt
from datahall.validation.coverage import LEAST_ROWS
from datahall.validation.inference.reliance import reliances
from datahall.validation.kernels import SYSTEMS
from datahall.validation.ledger import LEDGER, shipped_files, validate
from datahall.validation.measurement import read_rows
from datahall.validation.scorecard import Score, Scorecard

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PICTURED = {"chip": "h200", "model": "qwen3-30b-a3b", "phase": "decode", "batch": 64, "context": 4096}
MARKED = re.compile(r"<!-- table (\w+): written by docs/generate.py -->\n.*?<!-- end of table -->", re.S)
STUB = ROOT / "src/datahall/__init__.pyi"
KERNELS: list[Path] = []
SERVED = ("http://127.0.0.1:8080/", "http://127.0.0.1:8090/")  # what a page may have a reader ask
SWEEP = ROOT / "calibration" / "h200"
NOTICE = "<!-- Written by docs/generate.py: change that, or what it prints, and run make docs. -->"
HEAD = ("rows", "median", "mean", "P90", "bias", "in band")


class Fence(NamedTuple):
    """A fenced block: the lines between `first` and `last`, its language and its options."""

    first: int
    last: int
    language: str
    options: dict[str, str]
    body: str


class Failed(Exception):
    """A command or script of a page did not do what the page says."""


def fences(text: str) -> Iterator[Fence]:
    """Every fenced block of a page."""
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        language, *words = lines[start].removeprefix("```").split() or [""]
        options = {key: value for key, _, value in (word.partition("=") for word in words)}
        yield Fence(start + 1, number, language, options, "\n".join(lines[start + 1 : number]))
        start = None


def commands(fence: Fence) -> Iterator[list[str]]:
    """The commands of a block as words; a line that ends in a backslash goes on in the next."""
    for line in fence.body.replace("\\\n", " ").split("\n"):
        if words := shlex.split(line, comments=True):
            yield words


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """An empty working folder and an empty home, which the catalogue of the user is read from."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        os.environ["XDG_DATA_HOME"] = str(Path(place) / ".home")
        for name in ("DATAHALL_CATALOG", "COLUMNS", "FORCE_COLOR"):
            os.environ.pop(name, None)
        load.cache_clear()
        try:
            yield Path(place)
        finally:
            os.environ.clear()
            os.environ.update(before)
            load.cache_clear()


def refreshed(text: str) -> str:
    """The page with every output block filled anew; what fails raises `Failed`."""
    lines, changes, printed = text.split("\n"), [], ""
    script: dict[str, object] = {"__name__": "__main__"}
    with folder() as place, serving() as served:
        for fence in fences(text):
            if name := fence.options.get("file"):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(fence.body + "\n", encoding="utf-8")
            elif fence.language in {"sh", "bash", "console"}:
                code = int(fence.options.get("exit", 0))
                printed = "\n".join(executed(words, code, served) for words in commands(fence))
            elif fence.language == "python":
                printed = scripted(fence, script)
            elif "output" in fence.options:
                changes.append((fence, chosen(printed.strip("\n"), fence.options).split("\n")))
    for fence, new in reversed(changes):
        lines[fence.first : fence.last] = new
    return "\n".join(lines)


@contextlib.contextmanager
def serving() -> Iterator[Servers]:
    """Servers that commands of a page have started; they end with the page."""
    served = Servers()
    try:
        yield served
    finally:
        served.end()


class Servers:
    """A server that a page starts runs at a port of its own, and stands for the address that the page calls it by."""

    USUAL = "http://127.0.0.1:8080"

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._url = self.USUAL

    def start(self, words: list[str]) -> None:
        command = [sys.executable, "-m", *words, "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        if not said:
            raise Failed(f"{shlex.join(words)}: {process.stderr.read()}")
        self._url = said.split()[0]

    def at(self, words: list[str]) -> list[str]:
        """A command that asks the server, wherever it is."""
        return [word.replace(self.USUAL, self._url) for word in words]

    def end(self) -> None:
        for process in self._processes:
            process.terminate()
            process.communicate()


def executed(words: list[str], expected: int, served: Servers | None = None) -> str:
    """Run one command and return what it printed; errors only where it is meant to fail."""
    if words[:3] == ["datahall", "serve", "--virtual"] and not expected and served is not None:
        served.start(words)
        return ""
    needs_others = words[1:2] in (["serve"], ["studio"]) or words[1:3] == ["gateway", "top"]
    if words[0] != "datahall" or (needs_others and not expected and "--help" not in words):
        return exists(words)
    if served is not None:
        words = served.at(words)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words[1:])
    if code != expected:
        raise Failed(
            f"{shlex.join(words)}: exit code {code}, not {expected}\n{out.getvalue()}{err.getvalue()}"
        )
    return out.getvalue() + (err.getvalue() if expected else "")


def exists(words: list[str]) -> str:
    """Check a command that a reader runs and we do not: a make target, an extra, a file for Python."""
    match words:
        case ["make", *targets]:
            known = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
            if not set(targets) <= known:
                raise Failed(f"make has no target {set(targets) - known}")
        case ["python", file, *_]:
            if not (ROOT / file).is_file():
                raise Failed(f"{file} does not exist")
        case ["pip", "install", *targets]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            asked = {extra for target in targets for extra in re.findall(r"\[(\w+)\]", target)}
            if not asked <= set(project["optional-dependencies"]):
                raise Failed(f"there is no extra {asked - set(project['optional-dependencies'])}")
        case ["datahall", "serve", *rest]:  # it would not end: what it is told is checked
            for file in (word for word in rest if word.endswith(".toml")):
                executed(["datahall", "check", file], 0)
        case ["datahall", "studio", *rest]:  # it would not end either: its options are read
            executed(["datahall", "studio", *rest, "--help"], 0)
        case ["datahall", "gateway", "top", *rest]:  # of a gateway that runs: its options are read
            executed(["datahall", "gateway", "top", *rest, "--help"], 0)
        case ["curl", *rest] if any(word.startswith(SERVED) for word in rest):
            pass
        case ["git", "clone", *_] | ["cd", _]:
            pass
        case _:
            raise Failed(f"{shlex.join(words)}: no command that a reader of this page would have")
    return ""


def scripted(fence: Fence, script: dict[str, object]) -> str:
    """Run one part of a page's script and return what it printed."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(fence.body, f"line {fence.first}", "exec"), script)
    except Exception as error:
        raise Failed(f"python at line {fence.first}: {type(error).__name__}: {error}") from error
    return out.getvalue()


def chosen(text: str, options: dict[str, str]) -> str:
    """The blocks or lines that an output block keeps; … stands for what is left out."""
    for key, separator in (("blocks", "\n\n"), ("lines", "\n")):
        if key in options:
            units = text.split(separator)
            spans = [tuple(map(int, span.split("-"))) for span in options[key].split(",")]
            kept = [
                unit for first, *last in spans for unit in ("…", *units[first - 1 : (last or [first])[0]])
            ]
            text = separator.join(kept[1:] if spans[0][0] == 1 else kept)
            if max(spans[-1]) < len(units):
                text += separator + "…"
    return re.sub(r"(?m)[ \t]+$", "", text)


def signed(percent: float, digits: int, unit: str = "%") -> str:
    """A percentage with its sign; adding zero keeps −0.0 from flickering with the last bit of a float."""
    return f"{round(percent, digits) + 0.0:+.{digits}f} {unit}".replace("-", "−")


README_GROUPS = {
    "kernels": {
        "GEMM bf16": "H200, products in bf16",
        "GEMM fp8": "H200, products in fp8",
        "attention decode": "H200, attention in decode",
        "forward pass decode bf16": "H200, decode steps",
        "forward pass prefill bf16": "H200, prefill steps",
    },
    "training": {
        "Korthikanti et al. 2022 (selective recompute) Table 5": "training, Korthikanti",
        "vTrain ground truth (multi-node)": "training, vTrain",
        "MLPerf Training v5.0 (llama31_405b)": "training, MLPerf 405B",
        "MosaicML llm-foundry benchmarks": "training, llm-foundry FSDP",
        "NVIDIA dgxc-benchmarking v24.11.1": "training, NVIDIA dgxc 24.11",
        "NVIDIA Megatron-Bridge performance summary": "training, Megatron-Bridge, mostly experts",
        "MaxText published performance": "training, MaxText on TPUs",
        "BigScience BLOOM-176B topology study, peak memory": "training memory, BLOOM",
    },
    "inference": {
        "AIConfigurator silicon_sample, dense, TPOT": "serving, dense, TPOT",
        "AIConfigurator silicon_sample, dense, TTFT": "serving, dense, TTFT",
        "AIConfigurator silicon_sample, MoE, TPOT": "serving, experts, TPOT",
        "TensorRT-LLM perf docs v0.20": "serving, TensorRT-LLM 0.20 throughput",
        "ML.ENERGY benchmark v3": "serving, ML.ENERGY throughput",
    },
}


def sign_of(card: Scorecard) -> str:
    """What errors of a domain are in."""
    return "points" if card.unit == "points" else "%"


def table(name: str, scores: dict[str, Score], unit: str = "%") -> str:
    """Errors by group as Markdown."""
    lines = [f"| {name} | {' | '.join(HEAD)} |", f"| --- |{' ---: |' * len(HEAD)}"]
    for group, score in scores.items():
        percents = (score.median_ape, score.mean_ape, score.p90_ape)
        cells = [f"{score.rows:,}", *(f"{percent:.1f} {unit}" for percent in percents)]
        cells += [signed(score.bias, 1, unit), f"{score.band_coverage:.0f} %"]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines)


@cache
def scored(domain: str) -> Scorecard:
    """The shipped measurements of a domain, scored once for all pages."""
    return validate(domain)


def accuracy() -> str:
    """The table of README.md: groups of the ledger that a reader may know, and each domain as a whole."""
    groups: dict[str, Score] = {}
    for domain, chosen_groups in README_GROUPS.items():
        by_source = scored(domain).by_source
        names = {name.split(": ")[-1] if domain == "kernels" else name: name for name in by_source}
        groups |= {words: by_source[names[name]] for name, words in chosen_groups.items()}
    whole = scored("collectives")
    groups[f"collectives, {len(whole.by_source)} public sources"] = whole.overall
    return table("held-out rows", groups)


def checks() -> str:
    """Files in calibration/ that no constant was fitted on, for calibration.md."""
    groups: dict[str, Score] = {}
    with folder() as place:
        products = (SWEEP / "gemm_random_shapes.csv").read_text(encoding="utf-8").split()
        fields = [line.split(",") for line in products[1:]]
        milliseconds = [",".join([*shape, f"{float(us) / 1e3:.6g}"]) for *shape, us in fields]
        (place / "random.csv").write_text("\n".join(["dtype,m,n,k,ms", *milliseconds]), encoding="utf-8")
        found = validate("kernels", place / "random.csv").by_source
        groups |= {f"random shapes: {kind}": score for kind, score in found.items()}
    return table("check", groups)


def vllm(kernels: Path) -> str:
    """Errors on the rows of AIConfigurator's tables that were not fitted, for calibration.md."""
    kinds = ["GEMM table bf16", "GEMM table fp8", "GEMM table nvfp4", "attention table prefill bf16"]
    kinds += ["attention table decode bf16", "attention table decode fp8", "MoE table bf16", "MoE table fp8"]
    found = {system: {kind: "–" for kind in kinds} for system in sorted(SYSTEMS)}
    with folder() as place:
        for system in found:
            for name, column, groups, seed in (
                ("gemm", "gemm_dtype", ({"bfloat16", "fp8", "nvfp4"},), 7),
                ("attention", "kv_cache_dtype", ({"bfloat16"}, {"fp8"}), 3),
                ("moe", "moe_dtype", ({"bfloat16"},), 5),
            ):
                with (kernels / f"aic_{name}_extract.csv").open(encoding="utf-8", newline="") as file:
                    rows = [row for row in csv.DictReader(file) if row["system"] == system]
                fitted = set()
                for group in groups:
                    drawn = [row for row in rows if row[column] in group]
                    draws = np.random.default_rng(seed).random(len(drawn))  # as in calibration/search.py
                    fitted |= {id(row) for row, draw in zip(drawn, draws, strict=True) if draw < 0.25}
                lines = [",".join([*row.values(), str(int(id(row) in fitted))]) for row in rows]
                text = "\n".join([",".join([*rows[0], "fitted"]), *lines])
                (place / "table.csv").write_text(text, encoding="utf-8")
                for kind, score in validate("kernels", place / "table.csv").by_source.items():
                    if kind in kinds:
                        found[system][kind] = f"{score.median_ape:.0f} / {score.p90_ape:.0f} %"
    head = " | ".join(kind.replace(" table", "") for kind in kinds)
    lines = [f"| chip | {head} |", f"| --- |{' ---: |' * len(kinds)}"]
    return "\n".join(
        [*lines, *(f"| {SYSTEMS[s]} | {' | '.join(cells.values())} |" for s, cells in found.items())]
    )


def claimed(part: str) -> str:
    """What the source documents claim and what the shipped catalogue and models say, for seeds.md."""
    with folder():
        return claims.parts()[part]()


def validation_page(card: Scorecard) -> str:
    """The head of docs/validation.md."""
    missing = sum(reason.rows for reason in card.unsupported)
    reasons = "\n".join(f"| {one.reason} | {one.rows:,} |" for one in card.unsupported)
    worst = "\n".join(
        f"| {one.label} | {one.source.partition(': ')[2] or one.source} | {one.measured * 1e6:.1f} µs "
        f"| {one.predicted * 1e6:.1f} µs | {signed(one.error_percent, 0)} | {one.where} |"
        for one in card.worst
    )
    return f"""{NOTICE}

# Validation: kernels

`datahall validate kernels` predicts every shipped measurement again and prints the error. This page is its
answer.

{card.rows:,} measured rows: {card.scored:,} scored, {card.fitted:,} used for fitting and therefore never
scored, {missing:,} that the models cannot express. Error is predicted / measured − 1. Median, mean and P90
are of its size; bias is its signed median. *In band* is the share of rows inside their P10–P90 band: 80 %
would be right, more means that the band is too wide, less that it is too narrow. Bands are themselves made of rows
of the same sources, mostly of the very rows that are scored; what they are worth on rows of another source is said
apart for each domain ([limits.md](limits.md#bands)).

{table("", {"all": card.overall})}

## By source

{table("source", card.by_source)}

{apart_table(card)}
## By hardware

{table("hardware", card.by_hardware)}

Chips that were calibrated on tables which are not shipped are in [calibration.md](calibration.md).

## By model

A row names the model whose shapes it has; "–" are kernels of no model in particular.

{table("model", card.by_model)}

## Furthest off

| row | source | measured | predicted | error | where |
| --- | --- | ---: | ---: | ---: | --- |
{worst}

## Not scored

| reason | rows |
| --- | ---: |
| a constant was fitted on it | {card.fitted:,} |
{reasons + chr(10) if reasons else ""}
Each file says in its column `fitted` which rows those are; [calibration.md](calibration.md) says what was
fitted. Score a file of your own: [howto/score-measurements.md](howto/score-measurements.md).
"""


def ledger_pages() -> str:
    """docs/validation.md, of all domains."""
    others = (domain_section(scored(domain)) for domain in LEDGER if domain != "kernels")
    return "".join([validation_page(scored("kernels")), *others])


def regret_table(card: Scorecard) -> str:
    """What choosing by prediction cost, where a source measured several ways to do one job."""
    if not card.regret:
        return ""
    rows = "\n".join(
        f"| {source} | {one.jobs:,} | {one.ways:,} | {one.mean_percent:.1f} % | {one.worst_percent:.1f} % |"
        for source, one in card.regret.items()
    )
    return f"""
Regret of choosing by prediction, over jobs that were measured in several ways: the measured time of the way
predicted fastest / the best measured − 1.

| source | jobs | ways | mean | worst |
| --- | ---: | ---: | ---: | ---: |
{rows}
"""


def check_table(card: Scorecard) -> str:
    """What was played again from what the rows themselves say."""
    if not card.checks:
        return ""
    rows = "\n".join(
        f"| {metric} | {one.rows:,} | {one.p90_ape:.1f} % | {one.worst_ape:.1f} % |"
        for metric, one in card.checks.items()
    )
    return f"""
Played again from what the rows themselves say: a check of the model, and no prediction, so not scored.

| metric | rows | P90 | furthest |
| --- | ---: | ---: | ---: |
{rows}
"""


def noise_table(card: Scorecard) -> str:
    """How far the same run lies from itself, where a domain's sources repeat runs."""
    if not card.noise:
        return ""
    rows = "\n".join(
        f"| {metric} | {one.groups:,} | {one.rows:,} | {one.median_ape:.1f} % | {one.mean_ape:.1f} % "
        f"| {one.p90_ape:.1f} % |"
        for metric, one in card.noise.items()
    )
    return f"""
Repeated measurements: how far runs of one configuration lie from the median of their group. No prediction can be
better than that.

| metric | groups | runs | median | mean | P90 |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}
"""


def apart_table(card: Scorecard) -> str:
    """What bands are worth on rows that they were not made of."""
    if not card.apart:
        return ""
    rows = "\n".join(
        f"| {source} | {one.rows:,} | {one.stated_percent:.0f} % | {one.apart_percent:.0f} % |"
        for source, one in card.apart.items()
    )
    return f"""Rows of a source inside the stated bands, and inside bands made of the other sources alone; sources of
{LEAST_ROWS} rows and more.

| source | rows | in band | in bands of the others |
| --- | ---: | ---: | ---: |
{rows}
"""


def basis_table(card: Scorecard) -> str:
    """Errors by what the predictions rest on, where a domain says so."""
    return f"\n{table('kernels of the chip', card.by_basis)}\n" if card.by_basis else ""


def assumption_tables(card: Scorecard) -> str:
    """What benchmarks are taken to have done, and the score without: each, and all of them."""
    if card.as_stated is None:
        return ""
    rows = [row for path in shipped_files("inference") for row in read_rows(path)[1]]
    found = reliances(rows)
    said = "\n".join(
        f"| {one.name} | {one.did} | {one.inferred_from} | {one.applies_to} |"
        for one in (reliance.assumption for reliance in found)
    )
    each = "\n".join(
        f"| {one.assumption.name} | {metric} | {scored.rows:,} | {scored.mean_ape:.1f} % "
        f"| {one.without[metric].mean_ape:.1f} % |"
        for one in found
        for metric, scored in one.scored.items()
    )
    groups = "\n".join(
        f"| {name} | {plain.rows:,} | {card.by_source[name].mean_ape:.1f} % | {plain.mean_ape:.1f} % |"
        for name, plain in card.as_stated.by_source.items()
    )
    return f"""
## {card.domain.capitalize()}: what benchmarks are taken to have done

The sources do not state the following. It was inferred from marked rows, which are not scored, and for the last from
scripts too (`validation/inference/assumptions.py`). {card.as_stated.figures:,} scored figures are replayed with it.

| assumption | what it takes the benchmark to have done | inferred from | applies to |
| --- | --- | --- | --- |
{said}

Mean error on the scored rows that an assumption touches, with all of them and without that one:

| assumption | metric | rows | as scored | without it |
| --- | --- | ---: | ---: | ---: |
{each}

Mean error of the sources that have such rows, on all their rows, as scored and with none of the assumptions:

| source | rows | as scored | as the source states it |
| --- | ---: | ---: | ---: |
{groups}
"""


def domain_section(card: Scorecard) -> str:
    """One of the other domains, for validation.md."""
    reasons = "\n".join(f"| {one.reason} | {one.rows:,} |" for one in card.unsupported)
    worst = "\n".join(
        f"| {one.label} | {fmt(one.measured, one.unit)} | {fmt(one.predicted, one.unit)} "
        f"| {signed(one.error_percent, 0, 'points' if one.in_points else '%')} |"
        for one in card.worst
    )
    unit, notes = sign_of(card), "".join(f"- {note}\n" for note in card.notes)
    again = f"{card.num_replayed:,} played again as a check, " if card.checks else ""
    several = len(card.by_metric) > 1
    whole = table("metric", card.by_metric, unit) if several else table("", {"all": card.overall}, unit)
    return f"""
# Validation: {card.domain}

`datahall validate {card.domain}`: {card.rows:,} measured rows, {card.scored:,} scored, {card.fitted:,} used for
fitting, {again}{card.num_unsupported:,} not expressed.

{notes}{notes and chr(10)}{whole}
{check_table(card)}{regret_table(card)}{noise_table(card)}{basis_table(card)}{assumption_tables(card)}
## {card.domain.capitalize()} by source

{table("source", card.by_source, unit)}

{apart_table(card)}
## {card.domain.capitalize()} by hardware

{table("hardware", card.by_hardware, unit)}

## {card.domain.capitalize()} furthest off

| row | measured | predicted | error |
| --- | ---: | ---: | ---: |
{worst}

## {card.domain.capitalize()} not scored

| reason | rows |
| --- | ---: |
| a constant was fitted on it | {card.fitted:,} |
{reasons}
"""


def nomenclature_page() -> str:
    """docs/nomenclature.md, from the file that `datahall explain` reads."""
    entries = []
    for key, term in terms().items():
        full = "" if term.name.lower() == key.lower() else f" — {term.name}"
        lines = [f"### {key}{full}", "", term.meaning, ""]
        facts = [f"Unit: {term.unit_in_words or 'none'}."]
        facts += [f"Meaning as in: {term.like}."] if term.like else []
        facts += [f"Beware: {term.beware}"] if term.beware else []
        entries.append("\n".join([*lines, " ".join(facts)]))
    return f"""{NOTICE}

# Nomenclature

Each term has one meaning here, in the command line, in JSON keys, in Python and in these pages.
`datahall explain TERM` prints an entry; the terms live in `src/datahall/answers/term/nomenclature.toml`.

Quantities are SI. GB is 10⁹ bytes and GiB is 2³⁰; a lower-case b is a bit and is accepted on input only. FLOP
counts a multiply and an add as two. Peaks are dense. Link bandwidths are one way. Keys in JSON and names in
Python end in their unit: `_s`, `_bytes`, `_bytes_per_s`, `_flop`, `_flop_per_s`, `_w`, `_usd`,
`_tokens_per_s`; ratios end in `_fraction` or `_ratio`, counts start with `num_`.

## Terms

{(chr(10) * 2).join(entries)}
"""


def picture() -> str:
    """docs/roofline.svg: the chart of the HTML report with its style inside, light and dark."""
    answer: Answer = show_roofline(**PICTURED)  # type: ignore[arg-type]
    css = (ROOT / "src/datahall/report/page.css").read_text(encoding="utf-8")
    light, dark = (" ".join(re.findall(r"--[\w-]+: [^;]+;", part)) for part in css.split("@media", 2)[:2])
    rules = re.findall(r"^\.datahall (?:svg )(\..*)$", css, re.M)
    font = "font: 11.5px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;"
    plain = [rule.replace(".datahall svg ", "") for rule in rules]
    style = (
        f"svg {{ {light} {font} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}\n"
        + "\n".join(plain)
    )
    head, _, body = svg(answer.charts[0]).partition("</title>")
    opening = head.replace(
        "<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" ', 1
    )
    backdrop = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
    return f"{opening}</title><style>\n{style}\n</style>{backdrop}{body}\n"


def pages() -> list[Path]:
    """Every page whose commands are run."""
    written = {DOCS / "validation.md", DOCS / "nomenclature.md", DOCS / "reference.md"}
    return [ROOT / "README.md", *sorted(set(DOCS.rglob("*.md")) - written)]


def generated() -> dict[Path, Callable[[], str]]:
    """The files that are written whole, and what writes each."""
    return {
        DOCS / "validation.md": ledger_pages,
        DOCS / "nomenclature.md": nomenclature_page,
        DOCS / "reference.md": lambda: f"{NOTICE}\n\n{reference()}",
        STUB: stub,
        DOCS / "roofline.svg": picture,
    }


def name_of(path: Path) -> str:
    """What a page goes by where some alone are asked for."""
    if path == STUB:
        return "stub"
    return path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).with_suffix("").as_posix()


def page_text(path: Path) -> str:
    """What a page should say."""
    return MARKED.sub(_written, refreshed(path.read_text(encoding="utf-8")))


def _written(block: re.Match[str]) -> str:
    """A marked table anew; those that need files from outside stay as they are."""
    writers: dict[str, Callable[[], str]] = {"accuracy": accuracy, "checks": checks}
    writers |= {f"seeds_{part}": partial(claimed, part) for part in claims.parts()}
    writers |= {"vllm": lambda: vllm(KERNELS[0])} if KERNELS else {}
    if block[1] not in writers:
        return block[0]
    first, last = block[0].split("\n", 1)[0], block[0].rsplit("\n", 1)[1]
    return f"{first}\n{writers[block[1]]()}\n{last}"


def main(names: Collection[str] = (), *, check: bool = False) -> int:
    """Write, or name, what is stale of all pages, or of some."""
    writers = generated() | {path: partial(page_text, path) for path in pages()}
    known = {name_of(path): path for path in writers}
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"no page is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    wanted = {path: writers[path]() for name, path in known.items() if not names or name in names}
    stale = [
        path
        for path, text in wanted.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{'stale' if check else 'wrote'} {path.relative_to(ROOT)}")
        if not check:
            path.write_text(wanted[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    words = argparse.ArgumentParser(description="Write into the documents what the program says.")
    words.add_argument("pages", nargs="*", help="these alone, e.g. reference stub")
    words.add_argument("--check", action="store_true", help="only name what is stale; exit code 1")
    words.add_argument("--kernels", type=Path, metavar="FOLDER", help="score its tables for calibration.md")
    said = words.parse_args()
    KERNELS += [said.kernels.resolve()] if said.kernels else []
    sys.exit(main(said.pages, check=said.check))
