"""Keys of batches: encoding, hashes, slots, and counts."""
