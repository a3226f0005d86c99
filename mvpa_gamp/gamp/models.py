"""A likelihood and a prior that belong together."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from .parameters import put, take


class Models(NamedTuple):
    """Likelihood and prior; in a solve every parameter has one value per column."""

    likelihood: Any
    prior: Any

    def take(self, columns: NDArray) -> "Models":
        """Some of the columns."""
        return Models(take(self.likelihood, columns), take(self.prior, columns))

    def replaced(self, columns: NDArray, other: "Models", others: NDArray) -> "Models":
        """A copy in which ``columns`` come from the columns ``others`` of ``other``."""
        if not columns.size:
            return self
        part = other.take(others)
        return Models(put(self.likelihood, columns, part.likelihood), put(self.prior, columns, part.prior))
