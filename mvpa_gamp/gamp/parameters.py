"""Parameters of likelihoods and priors as columns: check, name, expand, select and merge them.

A model is a frozen dataclass whose fields are parameters (floats, which ``check_parameter`` makes of any
number, or arrays with one value per column), other models (the slab of a Bernoulli prior, the base of a
robust likelihood) or settings (strings, bools, ints). A field declared with ``vector()`` holds one value per
mixture component, (L,) or (L, B). What a parameter measures its class states: ``squares``, ``shares``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, field, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Model = TypeVar("Model")
_VECTOR = {"parameter_ndim": 1}


def vector() -> Any:
    """Declare a dataclass field that holds one value per mixture component."""
    return field(metadata=_VECTOR)


def check_parameter(
    model: Any, name: str, valid: Callable[[np.ndarray], Any], expected: str, ndim: int = 0
) -> None:
    """Store a field as a float or an array of ``ndim`` or ``ndim`` + 1 axes, or say what is wrong."""
    given = getattr(model, name)
    try:
        value = np.array(given, dtype=float)
    except (TypeError, ValueError):
        value = np.array(np.nan)
    shaped = ndim <= value.ndim <= ndim + 1 and value.size > 0
    if not shaped or not np.all(np.isfinite(value) & valid(value)):
        shape = "one value per component" if ndim else "one number"
        raise ValueError(
            f"{type(model).__name__}: {name} must be {expected}, got {given!r}. "
            f"Give {shape}, or {'(components, fits)' if ndim else 'one value per fit'}."
        )
    object.__setattr__(model, name, value if value.ndim else float(value))


def learnt_names(model: Any, learn: Iterable[str] | None) -> tuple[str, ...]:
    """The names of the parameters to learn, checked; None means the model's default."""
    if learn is None:
        return tuple(model.default_learn)
    if not isinstance(learn, Iterable):
        raise ValueError(f"Expected the names of parameters to learn, got {learn!r}. Give a tuple of names.")
    names = (learn,) if isinstance(learn, str) else tuple(learn)
    unknown = [name for name in names if name not in model.learnable]
    if unknown:
        known = ", ".join(map(repr, model.learnable))
        raise ValueError(
            f"{type(model).__name__} cannot learn {', '.join(map(repr, unknown))}; "
            f"{f'it can learn {known}' if known else 'none of its parameters can be learnt'}."
        )
    return names


def parameters(model: Any) -> dict[str, Any]:
    """Flat name -> value of every numeric parameter, nested ones as ``slab.var``."""
    return {name: getattr(owner, item.name) for name, owner, item in _owned(model)}


def column_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Flat name -> () for a parameter that all columns share, (B,) for one value per column."""
    return {
        name: np.shape(getattr(owner, item.name))[_own_axes(item) :] for name, owner, item in _owned(model)
    }


def parameters_stated(model: Any, fact: str) -> tuple[str, ...]:
    """Flat names of the parameters that their class lists under a fact, such as ``squares``."""
    return tuple(name for name, owner, item in _owned(model) if item.name in getattr(owner, fact, ()))


def with_parameters(model: Model, values: dict[str, Any], prefix: str = "") -> Model:
    """A copy with new values under the flat names of ``parameters``."""
    changes: dict[str, Any] = {}
    for item, value in _items(model):
        name = prefix + item.name
        if is_dataclass(value):
            changes[item.name] = with_parameters(value, values, name + ".")
        elif name in values:
            changes[item.name] = values[name]
    return replace(model, **changes)  # type: ignore[type-var]


def expand(model: Model, n_columns: int) -> Model:
    """Give every parameter one value per column: (B,), or (L, B) for mixture fields."""

    def spread(value: Any, ndim: int) -> Any:
        value = np.asarray(value, dtype=float)
        if value.ndim > ndim:
            if value.shape[-1] != n_columns:
                raise ValueError(
                    f"{type(model).__name__}: a parameter has {value.shape[-1]} values for {n_columns} "
                    "fits. Give one number, or one value per fit."
                )
            return value.copy()
        return np.repeat(value[..., None], n_columns, axis=-1)

    return _map(model, spread)


def take(model: Model, columns: Any) -> Model:
    """Select columns of every parameter that has them."""
    return _map(model, lambda value, ndim: value[..., columns] if np.ndim(value) > ndim else value)


def put(model: Model, columns: Any, part: Model) -> Model:
    """Write the columns of ``part`` into a copy of an expanded ``model``."""
    changes: dict[str, Any] = {}
    for item, value in _items(model):
        other = getattr(part, item.name)
        if is_dataclass(value):
            changes[item.name] = put(value, columns, other)
        elif _is_numeric(value):
            changed = np.array(value, dtype=float)
            changed[..., columns] = other
            changes[item.name] = changed
    return replace(model, **changes)  # type: ignore[type-var]


def _map(model: Model, change: Callable[[Any, int], Any]) -> Model:
    changes: dict[str, Any] = {}
    for item, value in _items(model):
        if is_dataclass(value):
            changes[item.name] = _map(value, change)
        elif _is_numeric(value):
            changes[item.name] = change(value, _own_axes(item))
    return replace(model, **changes)  # type: ignore[type-var]


def _owned(model: Any, prefix: str = "") -> Iterator[tuple[str, Any, Field]]:
    """Flat name, the model it belongs to, and its field, of every parameter."""
    for item, value in _items(model):
        if is_dataclass(value):
            yield from _owned(value, f"{prefix}{item.name}.")
        elif _is_numeric(value):
            yield prefix + item.name, model, item


def _items(model: Any) -> Iterator[tuple[Field, Any]]:
    for item in fields(model):
        yield item, getattr(model, item.name)


def _own_axes(item: Field) -> int:
    """Axes of a parameter besides that of columns."""
    return item.metadata.get("parameter_ndim", 0)


def _is_numeric(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f"


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


_LARGEST, _LARGEST_SQUARE = 1e15, 1e30


def check_sizes(model: Any) -> None:
    """Refuse a model with a parameter that float32 cannot compute with: somebody mistyped it."""
    for name, value in parameters(model).items():
        if np.any(_within(model, name, value) != value):
            raise ValueError(f"{_sentence(model, name, value)}. Give a value in this range, or rescale X.")


def held(model: Model, n_columns: int) -> tuple[Model, NDArray]:
    """The model with one value per column, each within its limits; and where one was not, a status (B,).

    Columns do not see each other: one with parameters beyond the limits keeps no other from its fit.
    """
    wide, status = expand(model, n_columns), np.full(n_columns, "", dtype=object)
    values = parameters(wide)
    within = {name: _within(wide, name, value) for name, value in values.items()}
    for name in (name for name in values if name in parameters_stated(wide, "locations")):
        if np.any(within[name] != values[name]):  # no value within is near to it
            given = parameters(model)[name]
            raise ValueError(f"{_sentence(model, name, given)}. Give a value in this range, or rescale X.")
    for name, value in values.items():
        for column in np.flatnonzero((within[name] != value).reshape(-1, n_columns).any(axis=0)):
            found, used = value[..., column], within[name][..., column]
            status[column] = (
                f"Not converged at the parameters given: {_sentence(model, name, found)}; the fit was made "
                f"with {_shown(used)}. Give a value in this range, or rescale X."
            )
    return (with_parameters(wide, within) if status.any() else wide), status


def held_models(likelihood: Any, prior: Any, n_columns: int) -> tuple[Models, NDArray]:
    """Both models of a solve, and the status of columns whose likelihood or prior was not within."""
    (likelihood, of_likelihood), (prior, of_prior) = held(likelihood, n_columns), held(prior, n_columns)
    return Models(likelihood, prior), np.where(of_likelihood == "", of_prior, of_likelihood)


def _limits(model: Any, name: str) -> tuple[float, float]:
    """Smallest and largest size of a parameter besides zero."""
    if name in parameters_stated(model, "shares"):
        return 0.0, np.inf
    largest = _LARGEST_SQUARE if name in parameters_stated(model, "squares") else _LARGEST
    return 1 / largest, largest


def _within(model: Any, name: str, value: Any) -> NDArray:
    """The nearest value within the limits, of the same sign; zero stays."""
    value = np.asarray(value)
    return np.where(value == 0, value, np.copysign(np.clip(np.abs(value), *_limits(model, name)), value))


def _sentence(model: Any, name: str, value: Any) -> str:
    low, high = _limits(model, name)
    return (
        f"{type(model).__name__}: {name} must be zero or between {low:g} and {high:g} in size, which float32 "
        f"can compute with, got {_shown(value)}"
    )


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=4)
