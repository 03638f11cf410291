"""The ladder of serving as somebody asks for it: which replica on which load, and what each rung of it costs."""
