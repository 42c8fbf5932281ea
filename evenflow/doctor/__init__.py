"""`evenflow doctor`: what evenflow needs of a machine, what of that is there, and what to do about the rest."""
