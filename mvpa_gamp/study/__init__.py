"""A decoding study: data through one of the doors, tasks x methods, results folder. Commands call it."""
