"""Keys, key groups and keyed state: the lowest layer."""
