"""The closed loop: many scenarios in lock step."""
