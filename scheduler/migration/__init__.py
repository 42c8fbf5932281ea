"""Keys move between workers: balancing decides which, the mover plans the steps, a migration carries them out."""
