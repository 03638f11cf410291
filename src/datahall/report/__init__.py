"""An answer on a screen, in a file or on a page: tables, trees, Markdown, CSV, JSON and single-file HTML.

Every format is drawn from the same `Answer`, so none can say what another does not.
"""

from datahall.report.output import FORMATS, render, write

__all__ = ["FORMATS", "render", "write"]
