"""One model in words: parameters, arithmetic, bytes, and a pass of it on one chip."""
