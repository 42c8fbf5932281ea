"""Readers of files that appear or grow while the job runs."""
