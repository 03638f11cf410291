"""Questions about power: what a site draws, how it swings, and what its grid makes of it."""
