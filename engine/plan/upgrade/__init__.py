"""Live upgrades: the difference between the plan of a running job and that of a new version of its program."""
