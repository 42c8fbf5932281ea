"""From the graph that the user wrote to the tasks of its workers, and to other numbers of workers."""
