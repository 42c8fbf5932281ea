"""The tree of an expression, its text, and the problems that it may have."""
