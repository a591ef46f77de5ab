"""A Discord on loopback, and a chat page on it: for newcomers without a token, for tests, for load."""
