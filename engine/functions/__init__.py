"""The objects that users' functions get, and the calls of these functions."""
