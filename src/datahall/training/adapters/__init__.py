"""Fine-tuning by low-rank adapters: weights are frozen, in 16 bits or in four, and thin matrices beside them train."""
