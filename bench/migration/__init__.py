"""The cost of migrations, and the balance that they bring."""
