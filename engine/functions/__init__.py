"""What users' functions are given, and how they are called."""
