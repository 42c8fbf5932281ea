"""The functions of expressions: how each is bound to types, and its kernel."""
