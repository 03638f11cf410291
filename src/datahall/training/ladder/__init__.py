"""The ladder of training: what each technique gives a job, one on top of the other and each alone.

Every rung is a step of the same job, simulated as any other: only its framework, its layout or its format differs.
"""
