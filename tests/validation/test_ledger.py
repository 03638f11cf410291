"""A domain of the ledger is declared once, and loaded only where it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house import HOUSE, texts

from datahall.errors import UnknownNameError
from datahall.scenario.words import DOMAINS
from datahall.validation.ledger import LEDGER, shipped_files, validate
from datahall.validation.measurement import Format

GEMM = "dtype,m,n,k,ms\nbf16,16,6144,4096,0.0135\nbf16,4096,6144,4096,0.32\n"


def test_every_domain_has_formats_and_measurements() -> None:
    assert tuple(LEDGER) == DOMAINS
    for domain in DOMAINS:
        assert LEDGER[domain]
        assert all(isinstance(one, Format) for one in LEDGER[domain])
        assert shipped_files(domain)


def test_every_folder_of_measurements_is_a_domain() -> None:
    folders = sorted(path.name for path in (HOUSE / "validation" / "data").iterdir() if path.is_dir())
    assert folders == sorted(DOMAINS)


def test_what_is_no_domain_is_not_loaded() -> None:
    assert "scorecard" not in LEDGER
    with pytest.raises(UnknownNameError, match="kernels"):
        validate("kernel")


def test_a_domain_loads_none_of_the_others(tmp_path: Path) -> None:
    file = tmp_path / "gemm.csv"
    file.write_text(GEMM, encoding="utf-8")
    code = (
        "import sys\nfrom datahall.cli.main import run\n"
        f"assert run(['validate', 'kernels', '--data', {str(file)!r}, '--json']) == 0\n"
        "loaded = {name for name in sys.modules if name.startswith('datahall.validation.')}\n"
        "print({name.split('.')[2] for name in loaded}, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(HOUSE.parent)},
    )  # fmt: skip
    loaded = done.stderr.strip().splitlines()[-1]
    assert "'kernels'" in loaded
    assert not [domain for domain in DOMAINS if domain != "kernels" and f"'{domain}'" in loaded]


@pytest.mark.parametrize("place", ["scenario/sections/views.py", "answers/verbs/validation.py"])
def test_help_draws_the_domains_from_their_declaration(place: str) -> None:
    assert not [text for _, text in texts(HOUSE / place) if sum(domain in text for domain in DOMAINS) > 1]
