"""What money is spent on beside chips: who owns hardware, shares of a bill, stages of growth, runs that were paid for."""
