"""Plans: from the user's graph to the tasks of its workers, and to plans for other numbers of workers."""
