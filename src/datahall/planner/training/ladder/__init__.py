"""The ladder of training as somebody asks for it: which job, on which layout, and what each rung of it costs."""
