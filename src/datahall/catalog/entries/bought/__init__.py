"""What money is spent on beside chips: owners of hardware, shares of a bill, stages of growth, runs that were paid."""
