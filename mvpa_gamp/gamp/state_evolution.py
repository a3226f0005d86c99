"""State evolution: what GAMP does on average for large i.i.d. X, from scalar integrals alone.

The paper's section "Misclassification Rate via State Evolution", which builds on Rangan's Algorithm 3.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .models import Models
from .moments import Array
from .parameters import column_shapes
from .scalar_channels import (
    Channel,
    Estimate,
    first_estimate,
    input_channel,
    output_channel,
    prior_moments,
)
from .settings import MODES

CONVERGED = "Converged: the predicted errors no longer change."
ITERATION_LIMIT = (
    "Not converged: the iteration limit was reached. Raise max_iter, or take smaller steps (a lower damping)."
)
NOT_FINITE = (
    "Not converged: the prediction turned non-finite, or the labels' mean precision is not positive, which "
    "robust likelihoods can cause; the iterations before are kept. Take smaller steps (a lower damping), or "
    "make the prior stronger."
)

_NOTHING = 1e-14  # moments below this share of E w^2 count as 0 when the iteration is asked to stand still
_COLUMNS = 9  # of a record


@dataclass(frozen=True)
class StateEvolution:
    """Predicted averages after each iteration, (n_iter,), for one weight w and its estimate w_hat.

    The last entry is the fixed point when ``converged``. ``error_rate`` is the paper's
    Pr{y != sgn(x' w_hat)} for a new pair (x, y) of the true model, flipped labels of a robust one included.
    """

    status: str
    mse: Array  # E (w - w_hat)^2
    overlap: Array  # E w w_hat
    error_rate: Array
    correlation: Array  # of x' w and x' w_hat
    power: Array  # E w_hat^2
    tau_w: Array  # mean variance that the algorithm believes in: the mse when models match
    tau_r: Array  # variance of the pseudo-data r that it believes in
    gain: Array  # r = gain w + N(0, noise); 1 when models match
    noise: Array  # tau_r when models match

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return self.mse.size

    @property
    def converged(self) -> bool:
        """Whether the fixed point was reached."""
        return self.status == CONVERGED


def state_evolution(
    likelihood: Any,
    prior: Any,
    ratio: float,
    *,
    true_likelihood: Any = None,
    true_prior: Any = None,
    mode: str = "sum-product",
    max_iter: int = 1000,
    tol: float = 1e-7,
    damping: float = 1.0,
) -> StateEvolution:
    """Predict GAMP with ``likelihood`` and ``prior`` on M = ratio N samples of i.i.d. features, N large.

    X has entries of variance 1/M. The data come from the same models unless ``true_likelihood`` or
    ``true_prior`` say otherwise; a true likelihood is made to sum to one over the two labels, which matters
    for the hinge. ``damping`` is the step in (0, 1] with which the scalar channel moves: fixed points do
    not depend on it. ``tol`` is the relative change of mse, overlap and power that counts as standing still.

    Limits: one number per parameter; labels are exchangeable, p(y|z) = p(-y|-z); exact moments, because
    the paper's variational tau_s is not the slope of its s. Where tau_s is negative (robust likelihoods) the
    solver cuts it at 0 and this prediction does not.
    """
    given = Models(likelihood, prior)
    truth = Models(true_likelihood or likelihood, true_prior or prior)
    _check_settings(ratio, mode, max_iter, tol, damping)
    for model in (*given, *truth):
        _check_parameters(model)
    for used in (given.likelihood, truth.likelihood):
        _check_exact(used)
    for model in given:
        model.require_mode(mode)
    mean, var = prior_moments(truth.prior)
    energy = mean**2 + var
    estimate, channel = first_estimate(given.prior, truth.prior), None
    output, _ = output_channel(given, truth, estimate, ratio, mode)
    rows: list[tuple[float, ...]] = []
    status = ITERATION_LIMIT
    for _ in range(max_iter):
        channel = output.damped(channel, damping)
        if not channel.usable:
            status = NOT_FINITE
            break
        old, estimate = estimate, input_channel(given, truth, channel, mode)
        output, error_rate = output_channel(given, truth, estimate, ratio, mode)
        rows.append(_row(estimate, channel, error_rate, energy))
        if not np.isfinite(rows[-1]).all():
            rows.pop()
            status = NOT_FINITE
            break
        if _still(old, estimate, tol * damping, energy):
            status = CONVERGED
            break
    columns = np.array(rows, dtype=float).reshape(-1, _COLUMNS).T
    return StateEvolution(status, *columns)


def _row(estimate: Estimate, channel: Channel, error_rate: float, energy: float) -> tuple[float, ...]:
    """One iteration, in the order of the arrays of ``StateEvolution``."""
    power, overlap, mse, tau_w = estimate
    correlation = overlap / np.sqrt(power * energy) if power > 0 else 0.0
    return mse, overlap, error_rate, correlation, power, tau_w, channel.tau_r, channel.gain, channel.noise


def _still(old: Estimate, new: Estimate, tol: float, energy: float) -> bool:
    """Whether mse, overlap and power moved by no more than ``tol`` of themselves, or are all but 0."""
    pairs = ((old.mse, new.mse), (old.overlap, new.overlap), (old.power, new.power))
    return all(abs(b - a) <= tol * max(abs(b), _NOTHING * energy) for a, b in pairs)


def _check_settings(ratio: float, mode: str, max_iter: int, tol: float, damping: float) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}. Choose one.")
    if not (np.ndim(ratio) == 0 and np.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio must be M/N, a positive number, got {ratio!r}. Give samples over features.")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be a step in (0, 1], got {damping}. Give 1 for no damping.")
    if max_iter < 1 or not tol > 0:
        raise ValueError(
            f"max_iter must be at least 1 and tol positive, got {max_iter} and {tol}. Leave them "
            "out for the defaults."
        )


def _check_parameters(model: Any) -> None:
    for name, shape in column_shapes(model).items():
        if shape:
            raise ValueError(
                f"{type(model).__name__}: {name} must be one number here, got shape {shape}. "
                "Call state_evolution once per column."
            )


def _check_exact(likelihood: Any) -> None:
    if not likelihood.is_exact:
        raise ValueError(
            "State evolution needs exact moments, got moments='variational', whose tau_s is not the slope of "
            "its s. Use Logistic(moments='exact')."
        )
