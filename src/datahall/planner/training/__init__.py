"""The plan of a training run: every layout ranked, the best simulated, one chosen; on so many chips or by a date."""
