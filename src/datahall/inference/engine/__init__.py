"""One replica: the engine by name, its group of chips, drafts, adapters, hand-over of caches."""
