"""Storage of rows of bytes: the port, SQLite, Redis, and encryption at rest."""
