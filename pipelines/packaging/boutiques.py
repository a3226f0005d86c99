"""The Boutiques descriptor of the BIDS App, made from its command line."""

import argparse
from typing import Any

from mvpa_gamp import __version__
from mvpa_gamp.__main__ import LEVELS, build_parser

SKIPPED = ("help", "help_all")


def descriptor() -> dict[str, Any]:
    """What a Boutiques client needs to know to run the command: inputs, their types and flags, outputs."""
    given = [inputs(action) for action in build_parser()._actions if action.dest not in SKIPPED]
    each = [part for parts in given for part in parts]
    words = " ".join(part["value-key"] for part in each)
    return {
        "name": "mvpa_gamp",
        "tool-version": __version__,
        "schema-version": "0.5",
        "author": "The mvpa_gamp authors",
        "description": "Decode conditions in every participant of a BIDS dataset, and combine participants.",
        "command-line": f"mvpa-gamp {words}",
        "inputs": each,
        "groups": exclusive(each),
        "output-files": [
            {
                "id": "results",
                "name": "results folder",
                "description": "dataset_description.json, tables, maps and pages of all participants",
                "path-template": "[OUT]",
            }
        ],
        "tags": {"domain": ["neuroinformatics", "fmri"]},
        "suggested-resources": {"cpu-cores": 2, "ram": 4, "walltime-estimate": 3600},
        "error-codes": [
            {"code": 1, "description": "a participant was skipped or something failed"},
            {"code": 2, "description": "the input cannot be used"},
            {"code": 130, "description": "interrupted; --resume continues"},
        ],
    }


def inputs(action: argparse.Action) -> list[dict[str, Any]]:
    """The inputs that one argument of the command line makes: two for --x and --no-x."""
    if isinstance(action, argparse.BooleanOptionalAction):
        return [_flag(action, option) for option in action.option_strings if option.startswith("--")]
    if action.option_strings and action.nargs == 0:
        return [_flag(action, action.option_strings[0])]
    return [_value(action)]


def _described(action: argparse.Action, name: str) -> dict[str, Any]:
    """What inputs of every type say."""
    identifier = name.lstrip("-").replace("-", "_")
    return {
        "id": identifier,
        "name": identifier.replace("_", " "),
        "description": (action.help or "").replace("%%", "%"),
        "value-key": f"[{identifier.upper()}]",
        "optional": bool(action.option_strings),
    }


def _flag(action: argparse.Action, option: str) -> dict[str, Any]:
    """An option without a value."""
    return {**_described(action, option), "type": "Flag", "command-line-flag": option}


def _value(action: argparse.Action) -> dict[str, Any]:
    """A positional argument, or an option with one value or several."""
    option = action.option_strings[0] if action.option_strings else action.dest
    made = {**_described(action, option), "type": "Number" if action.type in (int, float) else "String"}
    made |= {"integer": True} if action.type is int else {}
    made |= {"list": True} if action.nargs in ("+", "*") or isinstance(action.nargs, int) else {}
    if isinstance(action.nargs, int):
        made |= {"min-list-entries": action.nargs, "max-list-entries": action.nargs}
    choices = LEVELS if action.dest == "level" else action.choices
    made |= {"value-choices": list(choices)} if choices else {}
    made |= {"type": "File"} if action.dest == "bids_dir" else {}
    return made | ({"command-line-flag": option} if action.option_strings else {})


def exclusive(each: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Groups of inputs of which at most one can be given."""
    named = {part["id"] for part in each}
    pairs = [(name, f"no_{name}") for name in sorted(named) if f"no_{name}" in named]
    pairs += [pair for pair in (("multiclass", "classes"), ("quiet", "verbose")) if set(pair) <= named]
    return [
        {
            "id": "_or_".join(pair),
            "name": " or ".join(pair),
            "members": list(pair),
            "mutually-exclusive": True,
        }
        for pair in pairs
    ]
