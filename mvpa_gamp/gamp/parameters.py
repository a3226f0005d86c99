"""Parameters of likelihoods and priors as columns: check, name, expand, select and merge them.

A model is a frozen dataclass whose fields are parameters (floats, which ``check_parameter`` makes of any
number, or arrays with one value per column), other models (the slab of a Bernoulli prior, the base of a
robust likelihood) or settings (strings, bools, ints). A field declared with ``vector()`` holds one value per
mixture component, (L,) or (L, B). What a parameter measures its class states: ``squares``, ``shares``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

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
