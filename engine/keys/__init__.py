"""Keys of batches: encoded, hashed, found again, and counted."""
