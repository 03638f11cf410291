"""What somebody says of money: what is bought and from whom, who owns it, and what it is compared with."""
