"""The protocol between tasks and with their drivers: elements, exchanges, routing tables, and the hand-over of state."""
