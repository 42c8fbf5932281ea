"""The types of columns: names of types, the type that holds two others, and conversions that change no value."""
