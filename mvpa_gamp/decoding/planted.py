"""What a check with planted effects found, and the sentences that follow from it."""

from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import binom

_ERRORS = 2.0  # standard errors by which a rate must exceed the nominal one, or a power fall, to be noted
_LEVEL = 0.05  # of the one-sided binomial test of the checks without an effect
_POWER = 0.8  # that this test must have against twice the nominal rate before it may confirm the rate


class PlantedEffect(NamedTuple):
    """What came of effects of one size, as means over repeats with their standard errors."""

    size: float  # shift of a planted voxel by -size or +size standard deviations
    false_rate: float  # share of selected voxels that resemble no planted one; 0 where none is selected
    false_rate_se: float
    strict_rate: float  # share of selected voxels that are not planted
    strict_rate_se: float
    power: float  # share of planted voxels that are selected
    power_se: float
    n_selected: float
    n_repeats: int  # of size 0: distinct label vectors


@dataclass(frozen=True)
class PlantedCheck:
    """Observed false-discovery rates for each size of the planted effects, and the nominal rate."""

    method: str
    fdr: float
    n_planted: int
    n_repeats: int  # per size of the planted effects
    resemblance: float  # correlation with a planted voxel from which a voxel is no false discovery
    seed: int
    effects: tuple[PlantedEffect, ...]
    of: str = "feature"  # the word for a column of X

    @property
    def planted(self) -> tuple[PlantedEffect, ...]:
        """The sizes other than 0, in ascending order."""
        return tuple(sorted(each for each in self.effects if each.size))

    @property
    def nothing(self) -> PlantedEffect | None:
        """The checks without an effect, where whatever is selected is false; None if not made."""
        return next((each for each in self.effects if not each.size), None)

    @property
    def worst(self) -> PlantedEffect:
        """The size, other than 0, with the highest observed rate."""
        return max(self.planted, key=lambda each: each.false_rate)

    @property
    def false_alarms(self) -> float:
        """Share of checks in which something was selected though nothing was planted; NaN if not tried."""
        return float("nan") if self.nothing is None else self.nothing.false_rate

    @property
    def selects(self) -> bool:
        """Whether any voxel was selected where effects were planted."""
        return any(each.n_selected for each in self.planted)

    @property
    def tells(self) -> bool:
        """Whether checks without an effect are enough to distinguish twice the nominal rate from it."""
        n = 0 if self.nothing is None else self.nothing.n_repeats
        return bool(binom.sf(binom.isf(_LEVEL, n, self.fdr), n, 2 * self.fdr) >= _POWER)

    @property
    def holds(self) -> bool:
        """Whether voxels were selected, no rate, with or without effects, is above nominal, and it shows."""
        below = self.false_alarms <= self.fdr and self.worst.false_rate <= self.fdr
        return self.selects and below and self.tells

    @property
    def contradicted(self) -> bool:
        """Whether an observed rate is above the nominal one by more than chance explains."""
        worst, nothing = self.worst, self.nothing
        if worst.false_rate - _ERRORS * worst.false_rate_se > self.fdr:
            return True
        if nothing is None:
            return False
        alarms = round(nothing.false_rate * nothing.n_repeats)
        return bool(binom.sf(alarms - 1, nothing.n_repeats, self.fdr) < _LEVEL)

    @property
    def verdict(self) -> str:
        """Sentences for the page: whether the rate may be relied on, by which numbers, and the power."""
        numbers = f"{self._without_effect}; {self._with_effects}. {self._power}"
        if self.contradicted:
            return (
                f"Do not rely on the false-discovery rate here: {numbers} Take selected {self.of}s as hints, "
                f"or {self._instead}."
            )
        if not self.selects:
            return f"The false-discovery rate could not be checked: {numbers}"
        if self.holds:
            return f"The false-discovery rate was confirmed by simulation: {numbers}"
        return f"The false-discovery rate is not contradicted here, but not confirmed either: {numbers}"

    @property
    def _instead(self) -> str:
        if self.of == "voxel":  # a question that the page answers
            return "ask which voxels carry information"
        return f"test {self.of}s one by one, with Benjamini-Hochberg"

    @property
    def _without_effect(self) -> str:
        nothing = self.nothing
        if nothing is None:
            return "checks without an effect were not made"
        few = "" if self.tells else f", too few to distinguish it from {200 * self.fdr:.1f} %"
        return (
            f"without any effect, {100 * nothing.false_rate:.1f} % of {nothing.n_repeats} simulated data "
            f"sets selected a {self.of} (standard error {100 * nothing.false_rate_se:.1f} %, nominal "
            f"{100 * self.fdr:.1f} %{few})"
        )

    @property
    def _with_effects(self) -> str:
        worst = self.worst
        if not self.selects:
            largest = self.planted[-1].size
            return f"no {self.of} was selected, not even with effects of {largest:.2g} standard deviations"
        return (
            f"at worst, with effects of {worst.size:.2g} standard deviations, "
            f"{100 * worst.false_rate:.1f} % of the {self.of}s selected in {worst.n_repeats} simulated data "
            f"sets were false (standard error {100 * worst.false_rate_se:.1f} %, nominal "
            f"{100 * self.fdr:.1f} %)"
        )

    @property
    def _power(self) -> str:
        shares = ", ".join(f"{100 * e.power:.0f} % at {e.size:.2g}" for e in self.planted)
        powers = [each.power for each in self.planted]
        falls = powers[-1] < max(powers) - _ERRORS * self.planted[-1].power_se
        missed = f" Power falls for strong effects: {self.of}s not selected may carry information too."
        return f"Planted {self.of}s found: {shares} standard deviations.{missed if falls else ''}"
