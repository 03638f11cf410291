"""Low-rank adapters beside the products of a model: which they can stand beside, and how many values they have."""
