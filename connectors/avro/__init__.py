"""Avro: schemas as Arrow types, what one schema makes of rows of another, and the registry that knows schemas by their numbers."""
