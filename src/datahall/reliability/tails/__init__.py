"""How likely a count is no more than a number, in at most as many steps as such counts spread over."""
