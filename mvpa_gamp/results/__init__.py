"""A results folder: its names, one writer, one reader, its manifest."""
