"""Questions about the ladder of training: what each technique gives a job."""
