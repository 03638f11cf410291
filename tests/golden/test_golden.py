"""What commands print, kept beside this file and compared letter by letter."""

import re
import shlex
from pathlib import Path

import pytest

from datahall.catalog import load
from datahall.cli.main import run

HERE = Path(__file__).parent

LINES = {
    "help": "--help",
    "help-show-roofline": "show roofline --help",
    "chip": "show chip h100-sxm",
    "chip-claim": "show chip h100-sxm --claim 'peak.fp8=3958 TFLOP/s'",
    "chip-json": "show chip tpu-v4 --json",
    "model": "show model llama-3.1-70b --seq 8192",
    "model-moe": "show model deepseek-v3 --precision fp8 --batch 64 --chip h200-sxm --chip b200-sxm",
    "model-explain": "explain show model llama-3.1-8b",
    "model-csv": "show model llama-3.1-8b --format csv --quiet",
    "hierarchy": "show hierarchy h100-sxm --working-set '120 GB' --offload host --prefetch",
    "hierarchy-md": "show hierarchy h200-sxm --format md",
    "roofline": "show roofline h200 --model llama-3.1-8b --phase decode --batch 32 --format md",
    "plan-serve": "plan serve llama-3.1-8b --users 500 --ttft 1s --tpot 50ms --chips h100-sxm,h200 --format md",
    "simulate-serve": "simulate serve llama-3.1-8b --chip h200 --rate 4 --requests 2000 --format md",
    "techniques": "show techniques llama-3.1-8b --chip h200 --rate 10 --format md",
    "fit": "show fit llama-3.1-70b --chip h100-sxm --context 32k",
    "fit-no": "show fit llama-3.1-70b --chip h100-sxm --tp 1",
    "error-overload": "show techniques llama-3.1-8b --chip h200 --rate 1e9",
    "error-no-room": "simulate serve llama-3.1-70b --chip h100-sxm --rate 1",
    "chips": "catalog chips --sort memory",
    "servers": "catalog servers",
    "search": "catalog search nvlink",
    "term": "explain TPOT",
    "error-name": "show chip h10",
    "error-usage": "shw",
    "error-infeasible": "show hierarchy h100-sxm --working-set '160 GB'",
}
FITTED = {
    "roofline",
    "plan-serve",
    "simulate-serve",
    "techniques",
    "error-overload",
}  # its numbers are the ledger's business, its shape is ours


@pytest.mark.golden
@pytest.mark.parametrize("name", LINES)
def test_golden(
    name: str,
    update: bool,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for variable in ("DATAHALL_CATALOG", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    load.cache_clear()
    code = run(shlex.split(LINES[name]))
    out, err = capsys.readouterr()
    text = f"$ datahall {LINES[name]}\n{out}{err}[exit {code}]\n"
    if name in FITTED:
        text = _masked(text)
    file = HERE / f"{name}.txt"
    if update:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def _masked(text: str) -> str:
    """Every number below the command as one sign."""
    head, _, rest = text.partition("\n")
    masked = re.sub(r"[\d.,]*\d", "#", rest)
    return f"{head}\n{masked}"
