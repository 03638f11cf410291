"""Verbs about questions: several side by side, and one at many points."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL
from datahall.scenario.takes import AGES, SUPPLIED, Takes

VERBS = (
    Verb(
        name="compare",
        about="questions, saved answers, chips, models or clouds side by side: what differs, and what that does",
        answer="compare.compare:compare",
        takes=(
            Takes("comparison"),
            MODEL,
            Takes("deployment", only=("chip", "tp", "precision")),
            Takes("sequences"),
            AGES,
            SUPPLIED,
        ),
        arguments=("things",),
        required=("things",),
        by_file=False,
        several=True,
        asks_others=True,
        means=(
            ("chip", "Chip that clouds rent out, that models run on, or of every file."),
            ("model", "Model that chips run, or of every file."),
        ),
        examples=(
            "h100-sxm h200 b200 mi300x",
            "h100-sxm h200 --model llama-3.1-8b --batch 32",
            "aws gcp azure lambda coreweave --chip h100-sxm",
            "a.toml b.toml",
            "a.toml --set chips=2048 --set chips=2048,tp=8",
            "before.json after.json",
        ),
        details=(
            "THING is a scenario file, an answer saved as JSON, a chip, a model, or who rents chips out. Of an input, "
            "a flag stands over --set, and --set over the file."
        ),
    ),
    Verb(
        name="sweep",
        about="one question at many points, on all cores or a Ray cluster; it goes on where it was stopped",
        answer="sweep.sweep:sweep",
        takes=(Takes("sweep"),),
        arguments=("question",),
        required=("question", "over"),
        by_file=False,
        examples=(
            "question.toml --over chips=512,1024,2048 users=1000..10000:1000",
            'question.toml --over batch=1..256:x2 --best "most tokens_per_s" --show pass_s',
            "question.toml --over tp=1,2,4,8 --workers 4 -o sweep.csv",
            "question.toml --over tp=1,2,4,8 --workers ray",
        ),
        details=(
            "Values are a list, a range with a step (1..9:2) or one that grows by a factor (1..64:x2). With -o FILE, "
            "points are kept in FILE.points until all are there."
        ),
    ),
)
