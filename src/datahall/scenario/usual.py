"""What is taken where nobody says: numbers and names that both sections and the help of verbs state."""

from __future__ import annotations

USUAL_CHIP = "h100-sxm"
USUAL_SEQ = 8192  # tokens of a sequence, where neither a person nor a layout file says
USUAL_BATCH = 1024  # sequences of a step
USUAL_TUNING_BATCH = 8  # where adapters alone are trained: MLPerf Training's reference of llama2_70b_lora
# of a step where nobody says a batch or a layout and there are more chips than the usual one feeds
CHIPS_PER_SEQUENCE = 16
USUAL_PRECISION = "bf16"
