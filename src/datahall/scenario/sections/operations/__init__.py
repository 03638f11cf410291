"""What is asked of operations: failures and runs, checkpoints, queues of jobs, the way of data, the site."""
