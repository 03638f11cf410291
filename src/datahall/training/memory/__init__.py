"""What takes the memory of a chip in training, what can leave it, and what makes a layout fit."""
