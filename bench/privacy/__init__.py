"""Random walks that look for words that must not reach the model, nor stay stored."""
