"""One chip in words: its facts and claims about them, its memory hierarchy."""
