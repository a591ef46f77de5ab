"""Understanding of texts: pure functions, without Discord and without state."""
