"""Speaking unasked: what an offer can be made about, and when none may be made."""
