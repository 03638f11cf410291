"""Training: layouts of a model over chips, the time and memory of a step, and the best layout.

Closed forms run over whole spaces of layouts as columns; schedules are simulated event by event.
"""

from __future__ import annotations
