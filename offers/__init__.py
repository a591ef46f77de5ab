"""Speaking unasked: what triggers an offer, what limits them, and the offers themselves."""
