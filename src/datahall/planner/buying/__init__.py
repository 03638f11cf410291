"""What to buy: a training run, a service beside an API, a firm that grows, each laid out and then priced."""
