"""State evolution of VAMP: errors of its two estimates, iteration by iteration, for random rotations of X.

For X = U S V' with V uniform among rotations, whatever U and S (right-rotationally invariant X), the error of
r2 in front of the linear step and that of r1 in front of the prior behave like vectors in random directions
as X grows, and scalars describe them (Rangan, Schniter & Fletcher 2019). docs/mathematics.md derives them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .moments import Array
from .parameters import expand
from .priors.bernoulli import BernoulliPosterior, probability
from .priors.gaussian import Gaussian

_NODES, _REACH = 4001, 9.0  # of the integrals over r1, in standard deviations of its wider part
_SHARE = (1e-6, 0.95)  # as the engine bounds it


class VampEvolution(NamedTuple):
    """Mean squared errors of the weights, (iterations,): of the linear step, and of the prior's estimate."""

    linear: Array
    denoised: Array


def vamp_evolution(
    squares: NDArray, n_features: int, rate: float, slab_var: float, noise: float, n_iter: int = 15
) -> VampEvolution:
    """Errors of undamped VAMP with a Bernoulli-Gaussian prior, where truth and model agree.

    Parameters
    ----------
    squares
        The squared singular values of X (M,), M at most N.
    n_features
        N.
    rate, slab_var
        The share of weights that are not zero, and their variance.
    noise
        The variance of the noise.
    n_iter
        How many iterations.

    Returns
    -------
    VampEvolution
        The mean squared error after either step, iteration by iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.gamp import vamp_evolution
    >>> found = vamp_evolution(np.full(300, 1000.0), 1000, rate=0.1, slab_var=1.0, noise=1.0)
    >>> bool(found.denoised[-1] < found.denoised[0] < 0.1)
    True
    """
    power = rate * slab_var
    g2, error = 1 / power, power  # of r2 = 0
    linear, denoised = [], []
    for _ in range(n_iter):
        D = squares / noise + g2
        rest = n_features - squares.size
        mse = float((np.square(g2 / D) * error + squares / noise / np.square(D)).sum() + rest * error)
        variance = float((1 / D).sum() + rest / g2) / n_features
        linear.append(mse / n_features)
        kept = g2 * variance
        t = (linear[-1] - kept**2 * error) / (1 - kept) ** 2
        g1 = 1 / variance - g2
        mse, mean_variance = _denoised(t, 1 / g1, rate, slab_var)
        denoised.append(mse)
        left = float(np.clip(g1 * mean_variance, *_SHARE))
        error = (mse - left**2 * t) / (1 - left) ** 2
        g2 = g1 * (1 - left) / left
    return VampEvolution(np.array(linear), np.array(denoised))


def _denoised(t: float, assumed: float, rate: float, slab_var: float) -> tuple[float, float]:
    """Squared error and posterior variance of weights in noise of variance t, ``assumed`` by the step."""
    r = np.linspace(-_REACH, _REACH, _NODES) * np.sqrt(slab_var + t)
    given = expand(Gaussian(0.0, slab_var), 1).condition(r[:, None], np.array([assumed]))
    odds = np.log(rate / (1 - rate)) if rate < 1 else 50.0
    said = BernoulliPosterior(given, probability(given.log_bayes_factor(), np.full((r.size, 1), odds)))
    mean, variance = (each[:, 0] for each in said.moments())
    step, mse, expected = r[1] - r[0], 0.0, 0.0
    for share, spread in ((rate, slab_var), (1 - rate, 0.0)):
        total = spread + t
        density = share * np.exp(-np.square(r) / (2 * total)) / np.sqrt(2 * np.pi * total) * step
        gain = spread / total
        mse += float(density @ (np.square(mean - gain * r) + gain * t))
        expected += float(density @ variance)
    return mse, expected
