"""Kafka as a source and as a sink, over confluent-kafka: the extra `evenflow[kafka]`."""
