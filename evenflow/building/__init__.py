"""What the methods of streams make: operators, from checked arguments."""
