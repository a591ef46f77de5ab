"""Settings of servers, categories, channels and threads, and how each place inherits them."""
