"""A decoding study: data of one source, tasks x methods, results folder. Commands call it."""
