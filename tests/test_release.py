"""A wheel carries machine code: a first answer after a plain install compiles nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import datahall
from datahall import compiled

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "src" / "datahall"

FIRST = """
import sys
from pathlib import Path
from datahall import compiled
compiled.SHIPPED = Path(sys.argv.pop(1))
from datahall.cli.main import main
try:
    main()
finally:
    print("numba" in sys.modules)
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sys.path.insert(0, str(ROOT / "release"))
    try:
        from loops import compile_loops  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    folder: Path = tmp_path_factory.mktemp("wheel") / "shipped"
    compile_loops(folder)
    return folder


def bare_kernels() -> set[str]:
    """The functions given to `Bare` anywhere in the house."""
    found = set()
    for path in HOUSE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Bare":
                assert isinstance(node.args[0], ast.Name)
                found.add(node.args[0].id)
    return found


def test_every_loop_that_can_be_shipped_is(shipped: Path) -> None:
    assert {path.name.rpartition("-")[0] for path in shipped.iterdir()} == bare_kernels()


@pytest.mark.parametrize(
    "line",
    [
        "plan serve llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h100-sxm,h200,b200,mi300x",
        "plan train llama-3.1-405b --tokens 15.6T --chips 16384",
        "simulate serve mixtral-8x7b --chip h100-sxm --tp 2 --rate 2",
    ],
)
def test_a_first_answer_compiles_nothing(shipped: Path, tmp_path: Path, line: str) -> None:
    env = {
        **os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(datahall.__file__).parents[1]),
    }  # fmt: skip
    answer = subprocess.run(
        [sys.executable, "-c", FIRST, str(shipped), *line.split()], env=env, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split()[-1] == "False"
    assert "compiling" not in answer.stderr
    assert not list(tmp_path.rglob("*.code"))


def test_shipped_code_is_looked_for_inside_the_package() -> None:
    assert Path(compiled.__file__).parent / "shipped" == compiled.SHIPPED


def test_code_of_another_source_is_not_taken(shipped: Path) -> None:
    """The name of a file says of which source its code is."""
    from datahall.training.pipeline.simulate import play

    (name,) = (path.name for path in shipped.iterdir() if path.name.startswith("_play-"))
    assert name.startswith(f"_play-{play.stamp:08x}")
