"""The priors that have a name: a new one is its file, its import here and its entry below.

Everything else (the names of ``mvpa_gamp.gamp``, the classifier, the tests, the API page) reads this file.
"""

from collections.abc import Callable as _Callable

from mvpa_gamp.gamp.priors.bernoulli import Bernoulli
from mvpa_gamp.gamp.priors.elastic_net import ElasticNet, Laplace
from mvpa_gamp.gamp.priors.gaussian import Gaussian
from mvpa_gamp.gamp.priors.mixture import GaussianMixture


def _three_gaussians() -> GaussianMixture:
    """Negative, small and positive weights in equal shares, with total variance 1."""
    return GaussianMixture(weights=(1 / 3, 1 / 3, 1 / 3), means=(-1, 0, 1), variances=(1 / 3, 1 / 3, 1 / 3))


# Name -> factory of a start from which expectation maximisation learns. One weight in ten not zero was
# the best single start on fMRI; slabs start with variance about 1.
PRIORS: dict[str, _Callable] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "elastic-net": ElasticNet,
    "gaussian-mixture": _three_gaussians,
    "bernoulli-gaussian": lambda: Bernoulli(0.1, Gaussian()),
    "bernoulli-laplace": lambda: Bernoulli(0.1, Laplace(rate=2**0.5)),
    "bernoulli-elastic-net": lambda: Bernoulli(0.1, ElasticNet()),
    "bernoulli-gaussian-mixture": lambda: Bernoulli(0.1, _three_gaussians()),
}
