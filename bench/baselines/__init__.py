"""Other systems and balancers to compare with; no job uses them."""
