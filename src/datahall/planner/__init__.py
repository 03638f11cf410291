"""What to build: a question in, every candidate weighed, the best with the reasons the others lost out.

Planners put the rooms above together; they know no screens and return plans, not text.
"""

from __future__ import annotations
