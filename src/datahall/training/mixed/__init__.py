"""One data-parallel run on several kinds of chip: who gets how many micro-batches, and who waits for whom."""
