"""What a simulation does to a running job."""
