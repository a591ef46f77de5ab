"""One answer in the making: a queue per channel, taken together, answered, cancelled, drained."""
