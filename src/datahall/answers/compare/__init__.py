"""Several questions or things side by side: what they differ in, and what that does to each result."""
