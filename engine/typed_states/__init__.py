"""States of a declared type: annotations as types of values, and values as plain ones, which can be packed, and back."""
