"""Where the memory of a replica goes: weights, activations, blocks of cache, shared prefixes, tiers below the chip."""
