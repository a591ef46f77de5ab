"""The wire to Discord: what leaves (splitting, streaming edits, nonces), and how a message is read."""
