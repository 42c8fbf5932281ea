"""The objects passed to users' functions, and the calls of these functions."""
