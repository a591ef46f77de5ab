"""What one process carries: many mentions at once, a steady stream of messages, faults, and memory."""
