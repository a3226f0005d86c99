"""Generated faults, damaged results folders and bad input to Python and the command: how each one ends."""
