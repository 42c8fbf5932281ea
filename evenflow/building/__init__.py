"""Checks what users write in a flow, and makes the operators for it."""
