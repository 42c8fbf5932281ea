"""The checks of what a user gives to the methods of streams, and the operators made of it."""
