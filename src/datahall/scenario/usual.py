"""What is taken where nobody says: numbers and names that both sections and the help of verbs state."""

from __future__ import annotations

USUAL_CHIP = "h100-sxm"
USUAL_SEQ = 8192  # tokens of a sequence, where neither a person nor a layout file says
USUAL_BATCH = 1024  # sequences of a step, at least: `usual_batch` in `training/layout/asked.py`
USUAL_TUNING_BATCH = 8  # where adapters alone are trained: MLPerf Training's reference of llama2_70b_lora
CHIPS_PER_SEQUENCE = 16  # of a step, where there are more chips than that feeds
BATCH_WHERE_UNSAID = (
    f"{USUAL_BATCH}, of adapters {USUAL_TUNING_BATCH}, or one for every {CHIPS_PER_SEQUENCE} chips where those are "
    "more, rounded up to what a layout that is said divides"
)
USUAL_PRECISION = "bf16"
USUAL_NETWORK = "fat-tree"  # of chips that stand on no torus
USUAL_MODEL = "llama-3.1-70b"  # that customers of a firm use
OWNED_CHIPS = 1024  # of a cluster that is owned
LADDER_CHIPS, LADDER_TOKENS = 1024, 1e9  # of a ladder of techniques: chips, and tokens that are priced
LADDER_WHERE_UNSAID = f"{LADDER_TOKENS / 1e9:g}B"
