"""One script per figure or table of the paper: ``python -m pipelines.NAME --quick --out DIR``."""
