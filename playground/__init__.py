"""A Discord on loopback with a chat page: for newcomers without a token, for tests, and for load tests."""
