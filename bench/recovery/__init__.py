"""The cost of failures and of checkpoints, and jobs whose processes are killed all the time."""
