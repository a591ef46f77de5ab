"""Mini-apps: structured flows beside the free conversation, which ask, understand the answer, and act."""
