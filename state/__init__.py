"""What is remembered beside the conversation. Pure and synchronous; told the time."""
