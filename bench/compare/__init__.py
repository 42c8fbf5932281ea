"""The five numbers of the README, with those of other systems, from one command."""
