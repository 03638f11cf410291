"""Results side by side: which of them differ, by how much, and which is the better one of each."""
