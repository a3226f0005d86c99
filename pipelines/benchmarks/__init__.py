"""How fast and how lean the package is, next to its peers: ``python -m pipelines.benchmarks``."""
