"""Pipeline schedules: orders of work, the bubble in closed form, and the step simulated piece by piece."""
