"""The kinds of keyed state that operators open."""
