"""Checkpoints and savepoints: when they are taken, what they hold, which are kept, and what a job restores from."""
