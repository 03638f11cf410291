"""What a plan says of money: of a service by the month, of a training run as a whole."""
