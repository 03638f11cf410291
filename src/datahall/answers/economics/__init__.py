"""Questions of money: what a chip or a run costs, build or buy, what a customer costs as a firm grows."""
