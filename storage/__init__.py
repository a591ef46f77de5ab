"""Where rows of bytes are kept: the port, SQLite, Redis, and encryption at rest."""
