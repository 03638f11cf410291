"""Many points of one question: which they are, who answers them, what is kept of them when it stops, which is best."""
