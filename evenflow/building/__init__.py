"""Checks what a stream's methods are given, and makes the operators."""
