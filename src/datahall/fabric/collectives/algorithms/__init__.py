"""Published algorithms of collectives as pure functions: what they send, their rounds, their time in closed form."""
