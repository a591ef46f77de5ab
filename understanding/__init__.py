"""What words mean: pure functions of texts, which know neither Discord nor any state."""
