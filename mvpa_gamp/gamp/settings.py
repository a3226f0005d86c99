"""How the solver runs: mode, stopping rule, damping, variances."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

MODES = ("sum-product", "max-sum")
STOPS = ("cavity", "fixed-point")
VARIANCES = ("full", "uniform")

# A cavity run chooses among its iterates, so steps are small; the number of EM updates on the way is what
# their size changes. One rate per column wants many: 0.2 loses weak features among 30,000. Rates that follow
# neighbours find them sooner: 0.15 to 0.3 decode fMRI alike, in half the iterations, and 0.1 a little worse.
_CAVITY_STEP, _NEIGHBOURS_STEP = 0.1, 0.2
_FIXED_POINT_STEP = 0.5


@dataclass(frozen=True)
class SolverSettings:
    """Settings of one solve.

    mode : "sum-product" (posterior means) or "max-sum" (penalised loss minimisation).
    stop : "cavity" keeps the iterate with the best leave-one-out predictive score and stops when it
        has not improved for ``patience`` iterations; "fixed-point" runs until weights and slopes
        stand still. None: cavity for sum-product, fixed-point for max-sum.
    max_iter : iterations at most.
    tol : relative change of weights and of slopes that counts as standing still. None: 1e-5 for sum-product,
        1e-7 for max-sum; never below what the precision of X can resolve.
    damping : size of a step, in (0, 1]: 1 is undamped, less is damped more. None: 0.1 for cavity (small
        steps, fine choice of the iterate), 0.2 where the design has a connectivity, 0.5 for fixed-point.
        With the cavity stop, smaller steps usually select more features: compare selections at equal steps.
    adaptive : let each column shrink its step when its objective rises, and grow it back (fixed-point only;
        a column that turns non-finite is always retried with smaller steps).
    patience : iterations without a clearly better cavity score. A damped run dips below the score of its
        start before it rises, so until it is above, three times the patience are granted. None: 1 / damping,
        at least 3; 3 / damping chose the same iterates on fMRI and on synthetic data.
    variance : "full" (one per feature and row) or "uniform" (one per column; cheaper).
    intercept : learn an unpenalised offset of the scores.

    >>> from mvpa_gamp.gamp import SolverSettings
    >>> run = SolverSettings(mode="max-sum", intercept=True).resolved()
    >>> run.stop, run.damping, run.max_iter
    ('fixed-point', 0.5, 2000)
    """

    mode: str = "sum-product"
    stop: str | None = None
    max_iter: int | None = None
    tol: float | None = None
    damping: float | None = None
    adaptive: bool = True
    patience: int | None = None
    variance: str = "full"
    intercept: bool = False

    def __post_init__(self) -> None:
        _one_of("mode", self.mode, MODES)
        _one_of("variance", self.variance, VARIANCES)
        if self.stop is not None:
            _one_of("stop", self.stop, STOPS)
        if self.stop == "cavity" and self.mode == "max-sum":
            raise ValueError(
                "stop='cavity' needs mode='sum-product': max-sum has no leave-one-out predictive density. "
                "Use stop='fixed-point'."
            )
        if self.damping is not None and not (_is_number(self.damping) and 0 < self.damping <= 1):
            raise ValueError(
                f"damping must be a step in (0, 1], got {self.damping!r}. Give 1 for no damping."
            )
        for name in ("max_iter", "patience"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value >= 1 and value == int(value)):
                raise ValueError(
                    f"{name} must be a whole number, at least 1, got {value!r}. Give None for its default."
                )
        if self.tol is not None and not (_is_number(self.tol) and self.tol > 0):
            raise ValueError(f"tol must be a positive number, got {self.tol!r}. Give None for its default.")

    def resolved(self, neighbours: bool = False) -> "ResolvedSettings":
        """What a solve runs with: every None replaced by its default, with neighbours or without."""
        stop = self.stop or ("cavity" if self.mode == "sum-product" else "fixed-point")
        cavity_step = _NEIGHBOURS_STEP if neighbours else _CAVITY_STEP
        damping = self.damping or (cavity_step if stop == "cavity" else _FIXED_POINT_STEP)
        return ResolvedSettings(
            mode=self.mode,
            stop=stop,
            max_iter=self.max_iter or (500 if stop == "cavity" else 2000),
            tol=self.tol or (1e-5 if self.mode == "sum-product" else 1e-7),
            damping=damping,
            adaptive=self.adaptive and stop == "fixed-point",
            patience=self.patience or max(3, round(1 / damping)),
            variance=self.variance,
            intercept=self.intercept,
        )


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of ``SolverSettings`` with nothing left open; ``adaptive`` only with a fixed point."""

    mode: str
    stop: str
    max_iter: int
    tol: float
    damping: float
    adaptive: bool
    patience: int
    variance: str
    intercept: bool


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, np.number)) and not isinstance(value, bool) and math.isfinite(value)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}. Choose one.")
