"""What a training run costs, what its plan has the least of, and what would keep a budget."""
