"""`evenflow doctor`: checks a machine for evenflow's requirements, and says how to meet them."""
