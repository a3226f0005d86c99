"""The likelihoods that have a name: a new one is its file, its import here and its entry below.

Everything else (the names of ``mvpa_gamp.gamp``, the classifier, the tests, the API page) reads this file.
"""

from mvpa_gamp.gamp.likelihoods.hinge import Hinge
from mvpa_gamp.gamp.likelihoods.logistic import Logistic
from mvpa_gamp.gamp.likelihoods.probit import Probit

LIKELIHOODS: dict[str, type] = {
    "logistic": Logistic,
    "probit": Probit,
    "hinge": Hinge,
}
