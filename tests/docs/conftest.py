"""The program that writes the documents, as a module."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load_generate() -> ModuleType:
    """`docs/generate.py`, which finds its own modules beside it, as when it is run."""
    if "generate" not in sys.modules:
        sys.path.insert(0, str(ROOT / "docs"))
        spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["generate"] = module
        spec.loader.exec_module(module)
    return sys.modules["generate"]


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    return load_generate()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with a `page` once for each page of the manual."""
    if "page" in metafunc.fixturenames:
        pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
        metafunc.parametrize("page", pages, ids=[str(path.relative_to(ROOT)) for path in pages])
