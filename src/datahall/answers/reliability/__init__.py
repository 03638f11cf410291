"""What breaks, and what it takes down."""
