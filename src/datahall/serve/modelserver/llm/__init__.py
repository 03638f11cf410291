"""A small language model in this process: its weights, the engine that runs them, and OpenAI's chat over it."""
