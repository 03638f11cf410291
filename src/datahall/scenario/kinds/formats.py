"""Number formats by name: those to serve or train in, and those that chips multiply in."""

from __future__ import annotations

from datahall.catalog.number_formats import FORMATS, format_named
from datahall.errors import ScenarioError, UnknownNameError, option
from datahall.scenario.kinds.kind import Raw, Reading
from datahall.scenario.kinds.texts import Choice
from datahall.workload.precision import PRESETS, TRAINED, Precision


class PrecisionName(Choice, frozen=True):
    """A number format to serve in, or to train in, by name."""

    def read(self, raw: Raw, at: Reading) -> str:
        try:
            return super().read(raw, at)
        except ScenarioError:
            if not isinstance(raw, str) or not raw.strip():
                raise
            name = raw.strip().lower()
            Precision.named(name)  # refuses what nobody has, with the nearest that there are
            raise ScenarioError(
                f"nothing is trained in {name}: it is a format to serve in",
                hint=f"formats to train in: {', '.join(self.options)}",
            ) from None


def precision_kind(help: str, *, trained: bool = False) -> PrecisionName:
    """The kind of an input that names a number format."""
    return PrecisionName(
        help, metavar="FORMAT", example="fp8", options=TRAINED if trained else tuple(PRESETS)
    )


class PeakFormat(Choice, frozen=True):
    """A number format that chips multiply in, however it is spelled."""

    options: tuple[str, ...] = tuple(FORMATS)

    def read(self, raw: Raw, at: Reading) -> str:
        if not isinstance(raw, str) or not raw.strip():
            return super().read(raw, at)
        name = raw.strip()
        wanted = format_named(name)
        if wanted in self.options:
            return wanted
        if (served := PRESETS.get(name.lower())) is not None:
            raise ScenarioError(
                f"{option('precision', name.lower())} is a format to serve in, which chips multiply in {served.operands}",
                hint=option("precision", served.operands),
            )
        raise UnknownNameError("precision", name, self.options, hint=f"they are {', '.join(self.options)}")
