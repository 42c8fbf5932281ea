"""Conversion between the values of Kafka messages and rows."""
