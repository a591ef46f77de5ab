"""The wire to Discord: sending (splitting, streamed edits, nonces, cards), and reading messages and clicks."""
