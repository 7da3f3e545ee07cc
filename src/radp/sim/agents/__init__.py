"""The traffic around the ego: replayed from the log, or reacting by the Intelligent Driver Model."""
