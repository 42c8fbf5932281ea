"""What tasks say to one another and to their drivers: elements, exchanges, routing, and handing state over."""
