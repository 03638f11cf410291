"""Every command and script of the manual runs, prints what the page says, and every link leads somewhere."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import datahall
from datahall.catalog import load
from datahall.catalog.huggingface import FAMILIES

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_page_runs_and_prints_what_it_says(generate: ModuleType, page: Path) -> None:
    assert generate.page_text(page) == page.read_text(encoding="utf-8"), "stale: run make docs"


def test_what_is_written_whole_is_fresh(generate: ModuleType) -> None:
    for path, text_of in generate.generated().items():
        assert path.read_text(encoding="utf-8") == text_of(), f"{path.name} is stale: run make docs"


def test_some_pages_can_be_written_alone(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A new text of help changes the reference and the stub; nothing else is run for them."""

    def refuse() -> str:
        raise AssertionError("nobody asked for it")

    written = {tmp_path / f"{name}.md": refuse for name in ("validation", "nomenclature")}
    page = tmp_path / "reference.md"
    monkeypatch.setattr(generate, "generated", lambda: {**written, page: lambda: "new"})
    monkeypatch.setattr(generate, "pages", list)
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["reference"], check=True) == 1
    assert not page.exists()
    assert generate.main(["reference"]) == 0
    assert page.read_text() == "new"
    assert generate.main(["reference"], check=True) == 0
    assert "wrote" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"no page is called referenz; there are .*reference"):
        generate.main(["referenz"])


def test_every_page_has_a_name_of_its_own(generate: ModuleType) -> None:
    names = [generate.name_of(path) for path in (*generate.generated(), *generate.pages())]
    assert len(names) == len(set(names))
    assert {"reference", "stub", "README", "howto/add-a-chip"} <= set(names)


def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(found.read_text(encoding="utf-8")), target


def test_commands_can_be_copied(generate: ModuleType, page: Path) -> None:
    for fence in generate.fences(page.read_text(encoding="utf-8")):
        if fence.language in {"sh", "bash", "console"}:
            assert fence.body.strip()
            assert not re.search(r"^\s*[$>#%] ", fence.body, re.M), f"a prompt in {page.name}"


def test_readme_is_short_and_its_counts_are_right() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert f"{len(load().chips())} chips, {len(load().models())} models" in text


def test_one_version_everywhere() -> None:
    assert f"\nversion: {datahall.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{datahall.__version__}]" in changes
    assert changes.count("### Changed numbers") >= 1
    assert f"files of {len(FAMILIES)} families" in changes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```sh\ndatahall show chip h10\n```\n", "exit code 2, not 0"),
        ("```sh exit=1\ndatahall show chip h100-sxm\n```\n", "exit code 0, not 1"),
        ("```sh\nmake nothing\n```\n", "no target"),
        ("```sh\npip install -e '.[nothing]'\n```\n", "no extra"),
        ("```sh\npython nowhere.py\n```\n", "does not exist"),
        ("```sh\nrm -rf build\n```\n", "no command"),
        ("```python\nprint(undefined)\n```\n", "NameError"),
    ],
)
def test_what_does_not_work_is_found(generate: ModuleType, text: str, reason: str) -> None:
    with pytest.raises(generate.Failed, match=reason):
        generate.refreshed(text)


def test_output_is_filled_in(generate: ModuleType) -> None:
    page = "```python\nprint('a\\n\\nb\\nc\\n\\nd')\n```\n```text output {}\nold\n```\n"
    for options, kept in (
        ("", "a\n\nb\nc\n\nd"),
        ("blocks=1", "a\n\n…"),
        ("blocks=2-3", "…\n\nb\nc\n\nd"),
        ("blocks=1,3", "a\n\n…\n\nd"),
        ("blocks=2 lines=1-3", "…\n\nb\n…"),
    ):
        assert generate.refreshed(page.format(options)) == page.format(options).replace("old", kept)


def test_a_page_has_its_own_files_and_catalogue(generate: ModuleType) -> None:
    source = 'source = { title = "t", date = "2026" }'
    chip = f'[chip.x]\ntitle = "X"\nvendor = "v"\nfamily = "cpu"\nmemory = "1 GB"\n{source}'
    use = "datahall catalog add my/x.toml\ndatahall show chip x --quiet"
    generate.refreshed(f"```toml file=my/x.toml\n{chip}\n```\n```sh\n{use}\n```\n")
    assert "x" not in {chip.name for chip in load().chips()}
