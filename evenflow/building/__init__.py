"""Makes the operators of a stream's methods, and checks the arguments."""
