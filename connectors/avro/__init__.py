"""Avro: schemas as Arrow types, the resolution of one schema by another, and the schema registry."""
