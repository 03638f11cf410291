"""What a run of MLPerf Storage states, and how its two figures hang together.

The benchmark (DLIO) emulates a chip by waiting c for each batch.  Of an epoch of n steps it states

    throughput = n · batch / T                 over the whole epoch, T
    AU = (n − 1) · c / (T − first step)        without the first step

The first step waits until the readers have filled the way.  Readers that load a whole batch each (PyTorch) all begin at
once and share what storage gives, so the first batch is there when all k are: it takes (k + 1) steps with the step
itself.  Readers that share one batch (tf.data) take 2.  With x = throughput · c / batch, delivered over needed,

    AU = x · (n − 1) / (n − (k + 1) · x)

For 3D U-Net with 32 readers and the least number of steps, 500, AU is 6 points above x, as published results have it.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from datahall.catalog.entries.stored.dataset import Loader

LEAST_STEPS = 500  # of an epoch, that the rules of the benchmark ask for; a data set is made larger for them


def delivered_fraction(samples_per_s: float, num_chips: int, batch: int, step_s: float) -> float:
    """What was delivered of what chips need that never wait.

    >>> round(delivered_fraction(841943.86, 512, 400, 0.224), 4)
    0.9209
    """
    return samples_per_s * step_s / (batch * num_chips)


def stated_utilisation(delivered: float, num_steps: float, num_readers: float, loader: Loader) -> float:
    """AU as the benchmark states it for an epoch of so many steps, from what was delivered over all of it.

    >>> [round(stated_utilisation(0.9186, 500, readers, "whole batches"), 4) for readers in (4, 32)]
    [0.9253, 0.9759]
    """
    filling = (num_readers if loader == "whole batches" else 1.0) + 1.0
    working = num_steps - filling * delivered
    return min(1.0, delivered * (num_steps - 1.0) / working) if working > 0.0 else 1.0


class Constants(msgspec.Struct, frozen=True, kw_only=True):
    """What runs have that do not say it, and how far measurements lie from what we say."""

    num_usual_readers: float  # of a chip, where readers load whole batches
    bands: dict[str, tuple[float, float]]  # of utilisation: measured − predicted in points, P10 and P90
    available_ratio: tuple[float, float]  # delivered over what data sheets let through, P10 and P90
    num_available: int  # runs that these are of

    def band(self, loader: Loader, num_readers: float | None) -> tuple[float, float]:
        """The band of a run: with readers that each load a whole batch it matters whether their number is known."""
        known = "" if num_readers or loader == "one batch" else ", readers not stated"
        return self.bands[f"{loader}{known}"]


@cache
def constants() -> Constants:
    """What calibration/fit_storage.py found on published runs, read once."""
    text = resources.files("datahall.datapath").joinpath("data/benchmark.json").read_bytes()
    return msgspec.json.decode(text, type=Constants)
