"""Words: choices, names of the catalogue, text that another room reads, files, and yes or no."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from datahall.catalog.kinds import KINDS
from datahall.errors import ScenarioError, UnknownNameError, nearest
from datahall.scenario.kinds.kind import Kind, Raw, Reading, shown

SAMPLES = {
    "chip": "h100-sxm",
    "entry": "h100-sxm",
    "model": "llama-3.1-8b",
    "fabric": "fat-tree",
    "engine": "vllm",
    "framework": "nemo",
    "recipe": "megatron",
    "transport": "roce",
    "traffic": "sharegpt",
    "failures": "llama-3",
    "facility": "hyperscale",
    "cooling": "liquid",
    "grid": "texas",
    "country": "germany",
    "region": "aws-us-east-1",
    "foundry": "samsung",
    "storage": "nvme",
    "workload": "resnet50",
    "owner": "neocloud",
    "provider": "lambda",
    "priced": "llama-3.1-405b",
}


class Choice(Kind, frozen=True):
    """One of a few words, in any case and with either dash."""

    options: tuple[str, ...] = ()

    @property
    def sample(self) -> str:
        return self.example or next(iter(self.options), "")

    @property
    def words(self) -> tuple[str, ...]:
        return self.options

    def read(self, raw: Raw, at: Reading) -> str:
        del at
        folded = _folded(raw) if isinstance(raw, str) else ""
        for known in self.options:
            if _folded(known) == folded and folded:
                return known
        if isinstance(raw, str) and not folded:
            raise ScenarioError("nothing is said", hint=f"one of {', '.join(self.options)}")
        close = nearest(str(raw), self.options, 1)
        guess = f"; did you mean {close[0]}?" if close else ""
        raise ScenarioError(f"there is no {shown(raw)}", hint=f"one of {', '.join(self.options)}{guess}")

    def schema(self) -> dict[str, object]:
        return {"enum": list(self.options)}

    def placeholder(self, attribute: str) -> str:
        return self.metavar or attribute.upper()


def _folded(text: str) -> str:
    return text.strip().lower().replace("_", "-").replace(" ", "-")


class Text(Kind, frozen=True):
    """Words that another room reads."""

    def read(self, raw: Raw, at: Reading) -> str:
        del at
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise self.wrong(raw, self.hint() or "write text")
        if not str(raw).strip():
            raise ScenarioError("nothing is said", hint=self.hint() or "write text, or leave it out")
        return str(raw).strip()


class Name(Kind, frozen=True):
    """A name of the catalogue, or of what a room ships: a chip, a model, a fabric, an engine, a framework."""

    of: str = "chip"

    @property
    def sample(self) -> str:
        return self.example or SAMPLES.get(self.of, "")

    def read(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str):
            raise self.wrong(raw, f"the name of {'an' if self.of[0] in 'aeiou' else 'a'} {self.of}")
        name = raw.strip()
        if name.isdecimal():
            raise ScenarioError(
                f'"{name}" is a number, not the name of {"an" if self.of[0] in "aeiou" else "a"} {self.of}',
                hint=self.hint(),
            )
        if self.of == "model":
            return model_name(name, at)
        if self.of in KINDS:
            return at.catalog.name_of(self.of, name)
        if self.of == "workload":
            return workload_name(name, at)
        if self.of == "priced":
            return priced_name(name, at)
        if self.of == "provider":
            return provider_name(name, at)
        if not name:
            raise self.wrong(raw)
        return name

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or self.of.upper()


def model_name(name: str, at: Reading) -> str:
    """A model of the catalogue, or the path of a `config.json`, counted from the folder of the scenario."""
    path = Path(name).expanduser() if at.folder is None else at.folder / Path(name).expanduser()
    if path.suffix == ".json":
        return _config(path)
    if (path / "config.json").is_file():
        return _config(path / "config.json")
    try:
        return at.catalog.name_of("model", name)
    except UnknownNameError as error:
        if not _is_path(name, path):
            raise
        guess = f"; did you mean {error.nearest[0]}?" if error.nearest else ""
    there = "is a folder without a config.json" if path.is_dir() else "is not a config.json"
    raise ScenarioError(
        f"{path} {there if path.exists() else 'is not there'}",
        hint=f"a config.json in the Hugging Face format, the folder it is in, or a name of the catalogue{guess}",
    )


def workload_name(name: str, at: Reading) -> str:
    """A data set of the catalogue, or a model that is trained on text."""
    if at.catalog.knows("dataset", name):
        return at.catalog.name_of("dataset", name)
    try:
        return model_name(name, at)
    except UnknownNameError as error:
        known = [one.name for one in at.catalog.datasets()]
        raise UnknownNameError(
            "workload", name, [*known, *error.nearest], hint=f"{', '.join(known)}, or a model that reads text"
        ) from None


def priced_name(name: str, at: Reading) -> str:
    """A model that is trained, or a chip."""
    if at.catalog.knows("chip", name):
        return at.catalog.name_of("chip", name)
    try:
        return model_name(name, at)
    except UnknownNameError as error:
        known = [one for kind in ("chip", "model") for one in at.catalog.names(kind)]
        raise UnknownNameError(
            "model or chip",
            name,
            [*known, *error.nearest],
            hint="all of them: datahall catalog models, catalog chips",
        ) from None


def provider_name(name: str, at: Reading) -> str:
    """Whoever sells chips by the hour."""
    known = sorted({offer.provider for offer in at.catalog.offers() if not offer.purchase_usd > 0.0})
    folded = {_folded(one): one for one in known}
    if _folded(name) not in folded:
        raise UnknownNameError("provider", name, known, hint=f"they are {', '.join(known)}")
    return folded[_folded(name)]


def _is_path(name: str, path: Path) -> bool:
    """Whether a file is meant: what only a path begins with, or what lies there."""
    return name.startswith(("/", ".", "~")) or bool(name and path.exists())


def _config(path: Path) -> str:
    """The path of a model's file that describes one."""
    from datahall.catalog.huggingface import from_config

    from_config(path)
    return written(path)


def written(path: Path) -> str:
    """A path that no command takes for an option, whatever the file is called.

    >>> written(Path("./-x.json")), written(Path("a/b.json"))
    ('./-x.json', 'a/b.json')
    """
    return f"./{path}" if str(path).startswith("-") else str(path)


class File(Kind, frozen=True):
    """A file, counted from the folder of the scenario."""

    def read(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str | Path) or not str(raw).strip():
            raise self.wrong(raw, "the path of a file")
        path = Path(str(raw)).expanduser()
        found = path if at.folder is None else at.folder / path
        if not found.is_file():
            reason = "is a folder" if found.is_dir() else "is not a file"
            raise ScenarioError(
                f"{found} {reason}", hint="a path, counted from the working folder or the scenario's"
            )
        return written(found)

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "FILE"


class Flag(Kind, frozen=True):
    """Yes or no."""

    def read(self, raw: Raw, at: Reading) -> bool:
        del at
        if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
            return raw.strip().lower() == "true"
        if not isinstance(raw, bool):
            raise self.wrong(raw, "true or false")
        return raw

    def annotation(self, *also: str) -> str:
        del also
        return "bool"

    def schema(self) -> dict[str, object]:
        return {"type": "boolean"}


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """A name that nothing has; all that there are stand in the hint."""
    names = list(known)
    return UnknownNameError(kind, name, names, hint=f"one of {', '.join(names)}")
