"""Generated faults: damaged results folders, bad input to Python and to the command, and how each one ends."""
