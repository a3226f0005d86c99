"""What the engine asks of a likelihood ("activation function") p(y|z), y in {-1, +1}."""

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from mvpa_gamp.gamp.moments import Array, Moments, Slopes
from mvpa_gamp.gamp.parameters import learnt_names

Self = TypeVar("Self", bound="Likelihood")


@runtime_checkable
class Likelihood(Protocol):
    """A frozen dataclass of parameters, each a number or one value per column, and elementwise steps.

    y, p and tau_p broadcast together, usually (M, B); N(z; p, tau_p) is the Gaussian a step works against
    and C = integral of p(y|z) N(z; p, tau_p) dz. Rows that do not count are masked by the caller. Those that
    extend this class write ``posterior``, ``log_partition``, ``evaluate`` and ``loss``, and for max-sum GAMP,
    unless ``modes`` leaves it out, also ``prox``, ``prox_score``, ``loss_slopes`` and ``margin_at_loss``. All
    other facts and steps are defaults.
    """

    # What parameters measure: squares of z or of 1 / z (float32 holds larger ones), and probabilities (which
    # may be as small as they like).
    squares: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[tuple[str, ...]] = ()

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes of GAMP that it has steps for; both by default."""
        return ("sum-product", "max-sum")

    @property
    def learnable(self) -> tuple[str, ...]:
        """Names ``em_update`` can learn; none by default."""
        return ()

    @property
    def default_learn(self) -> tuple[str, ...]:
        """Names ``em_update`` learns unless told otherwise; none by default."""
        return ()

    @property
    def scale_names(self) -> tuple[str, ...]:
        """Learnable names that only rescale z, as the scale of the weights does; none by default."""
        return ()

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Between which values a learnt parameter says something, by name; at an end the data say nothing."""
        return {}

    def other_starts(self: Self, learn: tuple[str, ...]) -> tuple[Self, ...]:
        """From where else tuning of these names should begin, as it may end elsewhere; none by default."""
        return ()

    @property
    def kinks(self) -> tuple[float, ...]:
        """Margins y z at which the loss has a corner; none by default."""
        return ()

    @property
    def is_normalised(self) -> bool:
        """Whether p(+1|z) + p(-1|z) = 1."""
        return True

    @property
    def is_log_concave(self) -> bool:
        """Whether log p(y|z) is concave in z; a mixture, such as one with wrong labels, is not.

        Where it is not, tau_s of a row may be negative; only sums over rows have to be positive.
        """
        return True

    @property
    def is_exact(self) -> bool:
        """Whether ``score`` gives the derivatives of ``log_partition``, and not an approximation."""
        return True

    def require_mode(self, mode: str) -> None:
        """Refuse a mode that is not among ``modes``."""
        if mode not in self.modes:
            raise ValueError(
                f"A {type(self).__name__} likelihood has no {mode} step. Use mode='sum-product', or max-sum "
                "with a Logistic, Probit or Hinge likelihood."
            )

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """Mean and variance of p(y|z) N(z; p, tau_p) / C."""
        raise NotImplementedError

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """log C."""
        raise NotImplementedError

    def score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = d log C / dp and tau_s = -d^2 log C / dp^2."""
        return self.evaluate(y, p, tau_p)[0]

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """``score`` and ``log_partition`` for the cost of one."""
        raise NotImplementedError

    def loss(self, y: Any, z: Any) -> Array:
        """-log p(y|z)."""
        raise NotImplementedError

    def prox(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """u = argmin loss(y, u) + (u - p)^2 / (2 tau_p), and tau_p du/dp."""
        self.require_mode("max-sum")
        raise NotImplementedError

    def prox_score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = (u - p) / tau_p = -loss'(u) and tau_s = loss''(u) / (1 + tau_p loss''(u))."""
        self.require_mode("max-sum")
        raise NotImplementedError

    def loss_slopes(self, y: Any, z: Any) -> Slopes:
        """-d loss / dz and d^2 loss / dz^2; at a kink of the margin, those just below it."""
        self.require_mode("max-sum")
        raise NotImplementedError

    def margin_at_loss(self, level: Any) -> Array:
        """The margin y z at which the loss equals ``level`` > 0."""
        self.require_mode("max-sum")
        raise NotImplementedError

    def log_odds(self, z_mean: Any, z_var: Any) -> Array:
        """log P(y = +1) - log P(y = -1) of a new label for z ~ N(z_mean, z_var)."""
        return self.log_partition(1.0, z_mean, z_var) - self.log_partition(-1.0, z_mean, z_var)

    def predict_proba(self, z_mean: Any, z_var: Any) -> Array:
        """P(y = +1) of a new label for z ~ N(z_mean, z_var)."""
        return np.exp(self.log_partition(1.0, z_mean, z_var))

    def em_update(
        self: Self, y: Any, p: Any, tau_p: Any, learn: Iterable[str] | None = None, weights: Any = None
    ) -> Self:
        """One M-step of the named parameters, per column; ``weights`` is 1 on training rows, else 0."""
        if learnt_names(self, learn):
            raise NotImplementedError
        return self
