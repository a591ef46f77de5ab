"""The wire to Discord: what leaves (splitting, streaming edits, nonces, cards), how messages and clicks are read."""
