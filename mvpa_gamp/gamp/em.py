"""Tuning without a grid: expectation maximisation of prior and likelihood, per column (eq. generic_em).

In sum-product mode parameters move after every GAMP iteration, so tuning costs next to nothing. In
max-sum mode GAMP runs to its fixed point between two updates, because the proximal iterates in between
say nothing about the posterior.

A likelihood whose scale grows and weights that shrink give the same scores. So the two can be learnt only one
at a time: a run that moves both drifts along that line, and may end with no weight at all.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .batch import Batch
from .design import Design
from .iteration import Output
from .moments import Array
from .neighbours import check_neighbours
from .parameters import Models, expand, held_models, learnt_names, parameters, put, take, with_parameters
from .result import AT_BOUND, CAVITY, DIVERGED, FOUND_NOTHING, SMALLER_STEPS, SUCCESS, EmResult, GampResult
from .settings import SolverSettings
from .solve import Progress, checked_labels, run
from .starts import solve_screened


def names_to_learn(likelihood: Any, prior: Any, of_likelihood: Any, of_prior: Any) -> Models:
    """The names to learn of likelihood and prior; None means each model's ``default_learn``.

    Where a scale of the likelihood is learnt, the default of the prior leaves out what scales the weights,
    with a warning; names that say both are refused.
    """
    learn = Models(learnt_names(likelihood, of_likelihood), learnt_names(prior, of_prior))
    names = identifiable_names(likelihood, prior, learn.likelihood, learn.prior)
    if names == learn.prior:
        return learn
    scale = ", ".join(name for name in learn.likelihood if name in likelihood.scale_names)
    size = ", ".join(name for name in learn.prior if name not in names)
    cause = (
        f"The likelihood's {scale} and the prior's {size} both set the size of the scores, and the data "
        "cannot tell them apart"
    )
    others = tuple(name for name in learn.likelihood if name not in likelihood.scale_names)
    choice = f"learn_prior={names!r} to keep {size}, or learn_likelihood={others!r} to keep {scale}"
    if of_prior is not None:
        raise ValueError(f"{cause}: both cannot be learnt. Use {choice}.")
    warnings.warn(f"{cause}: {size} keeps its starting value. To choose, set {choice}.", stacklevel=3)
    return Models(learn.likelihood, names)


def identifiable_names(
    likelihood: Any, prior: Any, of_likelihood: Iterable[str], of_prior: tuple[str, ...]
) -> tuple[str, ...]:
    """``of_prior`` without what scales the weights, where a scale of the likelihood is learnt as well.

    A prior that keeps any of its scales fixed, such as the l2 of an elastic net, keeps all its names.
    """
    if not any(name in likelihood.scale_names for name in of_likelihood):
        return of_prior
    scales = _scale_names(prior)
    others = tuple(name for name in of_prior if name not in scales)
    return others if set(scales) <= set(of_prior) else of_prior


def at_bounds(models: Models, learn: Models, status: NDArray) -> NDArray:
    """``status`` (B,), in which columns say so whose learnt parameters ended at a bound of their range."""
    status = status.astype(object)
    for part, model, names in zip(Models._fields, models, learn, strict=True):
        ranges, values = model.useful_range, parameters(model)
        for name in (name for name in names if name in ranges):
            low, high = ranges[name]
            ended = np.isin(status, (*SUCCESS, FOUND_NOTHING))
            for column in np.flatnonzero(ended & ((values[name] <= low) | (values[name] >= high))):
                value = float(values[name][column])
                status[column] = AT_BOUND.format(name=f"{part}.{name}", value=value)
    return status.astype(str)


def _scale_names(prior: Any) -> tuple[str, ...]:
    """Parameters that change when the weights are doubled."""
    doubled = parameters(prior.scaled(2.0))
    return tuple(
        name for name, value in parameters(prior).items() if not np.array_equal(value, doubled[name])
    )


# Max-sum tuning rests when a full update would change a parameter by less: the support hardly feels it.
_PARAMETER_TOL = 5e-3
_LARGEST_STEP = float(np.log(1.5))
_TUNING_TOL = 1e-3  # solves between two updates need not be exact; the last one is
_TUNING_ITERATIONS = 300
# Summed steps before a likelihood with approximate moments learns its scale: while the weights are still
# leaving zero, variational moments say that the scale is small, and follow it down to an empty model.
_WAIT = 1.0
_TIE = 2.0  # nats of all rows within which another start is preferred: a likelihood offers one for a reason
_SMALLER = 0.25  # share of the step in the second try of a run that diverged


def fit_em(
    design: Design,
    y: Any,
    likelihood: Any,
    prior: Any,
    settings: SolverSettings | None = None,
    *,
    learn_prior: Iterable[str] | None = None,
    learn_likelihood: Iterable[str] | None = None,
    max_em_iter: int = 20,
    callback: Callable[[Progress], None] | None = None,
) -> EmResult:
    """Fit every column and learn its parameters from its own training rows.

    ``learn_prior`` and ``learn_likelihood`` name the parameters to learn, such as ("rate", "slab.var");
    None means each model's ``default_learn``, () means none. The data tell only the product of a logistic
    scale and the weights, so the likelihood's scale stays fixed by default; where it is learnt, the prior's
    scale stays fixed with a warning, and naming both is refused. ``max_em_iter`` limits the updates in
    max-sum mode. A likelihood with ``other_starts`` is fitted from each of them too, and the fit with the
    best leave-one-out score is returned; a run that diverged is tried again with smaller steps, and says so.

    Parameters
    ----------
    design
        X (M, N) and the training rows (M, B) of every column.
    y
        Labels (M,) or (M, B) in -1/+1.
    likelihood
        One of the likelihoods of this package, or one like them.
    prior
        One of the priors of this package, or one like them.
    settings
        None: the defaults of the prior's mode.
    learn_prior, learn_likelihood
        Names of the parameters to learn; None: those of the model.
    max_em_iter
        Updates in max-sum mode.
    callback
        Called after every iteration.

    Returns
    -------
    EmResult
        The result, the learnt likelihood and prior with one value (B,) per column, and their history.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 200))
    >>> y = np.where(X[:, 3] > X[:, 7], 1, -1)
    >>> from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, fit_em
    >>> tuned = fit_em(Design(X), y, Logistic(), Bernoulli(0.1, Gaussian()))
    >>> np.flatnonzero(tuned.inclusion()[:, 0] > 0.5), bool(tuned.prior.rate[0] < 0.1)
    (array([3, 7]), True)
    """
    settings = settings or SolverSettings()
    if design.neighbours is not None:
        check_neighbours(prior, settings.resolved(neighbours=True))
    if settings.mode == "max-sum":
        names = _max_sum_names(likelihood, prior, learn_likelihood, learn_prior)
        return _fit_max_sum(design, y, Models(likelihood, prior), settings, names, max_em_iter, callback)
    learn = names_to_learn(likelihood, prior, learn_likelihood, learn_prior)

    def attempt(columns: NDArray, given: Models, settings: SolverSettings) -> _Attempt:
        history = _History(columns.size)
        damping = settings.resolved(design.neighbours is not None).damping
        wait = 0 if likelihood.is_exact else round(_WAIT / damping)
        early = tuple(name for name in learn.likelihood if name not in likelihood.scale_names)

        def tune(batch: Batch, out: Output, statistics: dict[str, Array]) -> Models:
            likelihood, prior = batch.models
            if learn.prior:
                prior = prior.maximize(statistics, learn.prior)
            names = learn.likelihood if history.length >= wait else early
            if names:
                used = batch.design.row_counts.astype(float)
                likelihood = likelihood.em_update(batch.y, out.p, out.tau_p, names, weights=used)
            tuned = Models(likelihood, prior)
            history.add(batch.columns, tuned)
            return tuned

        part = design if columns.size == n_columns else design.take(columns)
        labels = y if columns.size == n_columns else np.asarray(y).reshape(len(y), -1)
        if labels is not y and labels.shape[1] > 1:
            labels = labels[:, columns]
        result, models = run(part, labels, *given, settings, tuner=tune, callback=callback)
        return _Attempt(result, models, history.arrays())

    n_columns = design.shape[2]
    every = np.arange(n_columns)
    best = attempt(every, Models(likelihood, prior), settings)
    for other in likelihood.other_starts(learn.likelihood):
        again = attempt(every, Models(other, prior), settings)
        gain = again.result.cavity_score - best.result.cavity_score
        best = best.replaced(np.flatnonzero(gain * design.row_counts.sum(axis=0) > -_TIE), again)
    diverged = np.flatnonzero(best.result.status == DIVERGED)
    if diverged.size:
        given = Models(expand(likelihood, n_columns), expand(prior, n_columns)).take(diverged)
        damping = _SMALLER * settings.resolved(design.neighbours is not None).damping
        again = attempt(diverged, given, replace(settings, damping=damping))
        good = np.flatnonzero(again.result.converged)
        best = best.replaced(diverged[good], again.with_status(CAVITY, SMALLER_STEPS), good)
    status = at_bounds(best.models, learn, best.result.status)
    return EmResult(replace(best.result, status=status), *best.models, best.history)


class _Attempt(NamedTuple):
    """Fits from one start: results, the models they were computed with, and how parameters moved."""

    result: GampResult
    models: Models
    history: dict[str, Array]

    def with_status(self, old: str, new: str) -> "_Attempt":
        """A copy in which one status is another."""
        status = np.where(self.result.status == old, new, self.result.status)
        return self._replace(result=replace(self.result, status=status))

    def replaced(self, columns: NDArray, other: "_Attempt", others: NDArray | None = None) -> "_Attempt":
        """A copy whose ``columns`` are the ``others`` of ``other``; None: the same."""
        if not columns.size:
            return self
        others = columns if others is None else others
        history = {}
        for name, rows in self.history.items():
            theirs = other.history[name]
            both = np.full((max(len(rows), len(theirs)), *rows.shape[1:]), np.nan)
            both[: len(rows)] = rows
            both[..., columns] = np.nan
            both[: len(theirs), ..., columns] = theirs[..., others]
            history[name] = both
        result = _with_columns(self.result, columns, _columns(other.result, others))
        return _Attempt(result, self.models.replaced(columns, other.models, others), history)


def _max_sum_names(likelihood: Any, prior: Any, of_likelihood: Any, of_prior: Any) -> tuple[str, ...]:
    """Parameters of the prior to learn, or a ValueError on what max-sum tuning cannot do."""
    learn = Models(learnt_names(likelihood, of_likelihood), learnt_names(prior, of_prior))
    if learn.likelihood:
        raise ValueError(
            f"Max-sum tuning learns prior parameters only, got learn_likelihood={learn.likelihood}. "
            "Use mode='sum-product' to learn the likelihood."
        )
    if likelihood.kinks and learn.prior:
        raise ValueError(
            f"Max-sum tuning needs a loss with curvature, got {type(likelihood).__name__}, which is "
            "piecewise linear. Use mode='sum-product', or keep the prior (em=False or learn_prior=())."
        )
    return learn.prior


def _fit_max_sum(
    design: Design,
    y: Any,
    models: Models,
    settings: SolverSettings,
    names: tuple[str, ...],
    max_em_iter: int,
    callback: Callable[[Progress], None] | None,
) -> EmResult:
    """Alternate warm-started solves and updates at the posterior of (r, tau_r); then solve to ``tol``."""
    n_columns = design.shape[2]
    history = _History(n_columns)
    (likelihood, prior), beyond = held_models(*models, n_columns)
    y = checked_labels(y, design)
    rough = replace(settings, tol=max(settings.resolved().tol, _TUNING_TOL), max_iter=_TUNING_ITERATIONS)
    active, result = np.arange(n_columns), None
    last: tuple[Any, Any] | None = None  # (prior, its update) of the update before
    for _ in range(max_em_iter if names else 0):
        part, given = design.take(active), Models(likelihood, prior).take(active)
        warm = None if result is None else _columns(result, active)
        now = solve_screened(part, y[:, active], *given, rough, warm=warm, callback=callback)
        result = now if result is None else _joined(result, active, now)
        updated = given.prior.em_update(now.r.astype(float), now.tau_r.astype(float), names)
        history.add(active, Models(given.likelihood, updated))
        going_on = np.flatnonzero(_relative_change(given.prior, updated) > _PARAMETER_TOL)
        if not going_on.size:
            break
        new = updated if last is None else _extrapolated(*last, given.prior, updated)
        prior = put(prior, active[going_on], take(new, going_on))
        last = (take(given.prior, going_on), take(updated, going_on))
        active = active[going_on]
    final = solve_screened(design, y, likelihood, prior, settings, warm=result, callback=callback)
    n_iter = final.n_iter if result is None else final.n_iter + result.n_iter
    status = np.where(beyond == "", final.status, beyond).astype(str)
    return EmResult(replace(final, n_iter=n_iter, status=status), likelihood, prior, history.arrays())


def _extrapolated(before: Any, before_updated: Any, now: Any, now_updated: Any) -> Any:
    """Where the updates seem to lead: a secant step on log-parameters, where two updates give a slope.

    Expectation maximisation contracts slowly (a factor of about 0.7 for the Laplace rate on fMRI). Steps
    are at most four plain ones and a factor of 1.5, because a rate that is far too large never comes back.
    """
    old, old_to, new, new_to = (parameters(model) for model in (before, before_updated, now, now_updated))
    changes = {}
    for name, value in new_to.items():
        positive = np.min([old[name], old_to[name], new[name], value], axis=0) > 0  # others move plainly
        logs = (np.log(np.where(positive, part, 1.0)) for part in (old[name], old_to[name], new[name], value))
        log_old, log_old_to, log_new, log_new_to = logs
        moved = log_new - log_old
        slope = (log_new_to - log_old_to) / np.where(np.abs(moved) > _PARAMETER_TOL, moved, np.inf)
        gain = np.where((slope > 0) & (slope < 1), 1 / np.maximum(1 - slope, 0.25), 1.0)
        step = np.clip(gain * (log_new_to - log_new), -_LARGEST_STEP, _LARGEST_STEP)
        changes[name] = np.where(positive, new[name] * np.exp(step), value)
    return with_parameters(now_updated, changes)


def _columns(result: GampResult, at: NDArray) -> GampResult:
    return GampResult(**{name: value[..., at] for name, value in vars(result).items()})


def _joined(result: GampResult, at: NDArray, part: GampResult) -> GampResult:
    """``result`` with some columns solved again; iterations add up."""
    return _with_columns(result, at, replace(part, n_iter=result.n_iter[at] + part.n_iter))


def _with_columns(result: GampResult, at: NDArray, part: GampResult) -> GampResult:
    """``result`` with some columns those of ``part``."""
    fields = {name: np.array(value) for name, value in vars(result).items()}
    fields["status"] = fields["status"].astype(object)
    for name, value in vars(part).items():
        fields[name][..., at] = value
    fields["status"] = fields["status"].astype(str)
    return GampResult(**fields)


def _relative_change(old: Any, new: Any) -> Array:
    changes = []
    after = parameters(new)
    for name, value in parameters(old).items():
        size = np.maximum(np.abs(value), np.abs(after[name]))
        change = np.abs(after[name] - value) / np.where(size > 0, size, 1.0)
        changes.append(change if change.ndim == 1 else change.max(axis=0))
    return np.max(changes, axis=0)


class _History:
    """Parameters after every update, one column per fit, NaN where a column had stopped."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.rows: dict[str, list[Array]] = {}
        self.length = 0

    def add(self, columns: NDArray, models: Models) -> None:
        for prefix, model in zip(("likelihood.", "prior."), models, strict=True):
            for name, value in parameters(model).items():
                row = np.full((*np.shape(value)[:-1], self.n_columns), np.nan)
                row[..., columns] = value
                self.rows.setdefault(prefix + name, []).append(row)
        self.length += 1

    def arrays(self) -> dict[str, Array]:
        return {name: np.array(rows) for name, rows in self.rows.items()}
