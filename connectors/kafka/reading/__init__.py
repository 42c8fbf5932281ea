"""Reading of Kafka topics: partitions, offsets, positions and the reader of one worker."""
