"""The columns of a solve that are still running, and everything about them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .compiled import is_worth_it
from .damping import Damping
from .design import Design
from .iteration import State, resume, start
from .moments import Array
from .parameters import Models
from .result import GampResult
from .settings import ResolvedSettings
from .weights_step import Weights


@dataclass
class Batch:
    """The columns still running, and everything about them.

    With the cavity stop a step writes the next weights over the present ones (``in_place``): what is to be
    kept was copied, and only a broken move is taken back. With a fixed point any move may be taken back, so
    present and next weights have memory of their own, and change places after every iteration.
    """

    columns: NDArray  # their numbers in the whole problem
    design: Design
    y: Array
    models: Models  # for the next iteration
    made_with: Models  # with which ``state`` was computed
    state: State
    spare: Weights  # memory for the next weights: the present ones where ``in_place``
    in_place: bool
    damping: Damping
    compiled: bool

    @classmethod
    def begin(
        cls, design: Design, y: Array, models: Models, settings: ResolvedSettings, warm: GampResult | None
    ) -> "Batch":
        """Every column at its start, or where an earlier result left it."""
        n_columns = design.shape[2]
        if warm is None:
            state = start(design, y, models.likelihood, models.prior, settings)
        else:
            state = resume(design, y, models.likelihood, models.prior, warm, settings)
        damping = Damping.begin(settings.damping, n_columns)
        in_place = settings.stop == "cavity"
        spare = state.weights if in_place else Weights(*(np.empty_like(part) for part in state.weights))
        compiled = is_worth_it(math.prod(design.shape))
        columns = np.arange(n_columns)
        return cls(columns, design, y, models, models, state, spare, in_place, damping, compiled)

    def take(self, keep: NDArray) -> "Batch":
        """Some of the columns; this batch's own arrays are used up."""
        state = self.state.take(keep)
        spare = state.weights if self.in_place else Weights(*(part[:, : keep.size] for part in self.spare))
        return Batch(
            self.columns[keep],
            self.design.take(keep),
            self.y[:, keep],
            self.models.take(keep),
            self.made_with.take(keep),
            state,
            spare,
            self.in_place,
            self.damping.take(keep),
            self.compiled,
        )
