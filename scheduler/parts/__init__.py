"""The parts of a job that decide: checkpoints, migrations, scaling and balancing."""
