"""Where a chip can be had: who makes it, who alone rents it out, what needs a licence, how long it takes; regions."""
