"""What a checkpoint holds of keyed state: whole snapshots, and chains of what changed."""
