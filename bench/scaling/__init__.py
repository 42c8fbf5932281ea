"""Scaling policies under changing demand."""
