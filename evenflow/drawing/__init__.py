"""How jobs, their figures and their changes look on a terminal."""
