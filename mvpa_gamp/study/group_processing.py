"""How the participants of a group were processed: what is common to all, and whether it is alike."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.results.reader import Results
from mvpa_gamp.study.describe import LEFT_OUT

# What may differ between participants that are processed alike: lags in volumes follow the TR.
_OF_ONE = (*LEFT_OUT, "lag_trs", "confound_columns")


def mixed(people: Sequence[Results]) -> list[str]:
    """A sentence when participants were not processed alike."""
    kinds: dict[str, list[str]] = {}
    for person in people:
        steps = _comparable(person.summary.processing) | {"samples": person.summary.data.get("unit")}
        kinds.setdefault(json.dumps(steps, sort_keys=True), []).append(f"sub-{person.subjects[0]}")
    if len(kinds) < 2:
        return []
    groups = "; ".join(", ".join(members) for members in kinds.values())
    return [f"Participants were processed in different ways ({groups}): compare their config.toml files."]


def in_common(people: Sequence[Results]) -> dict[str, Any]:
    """Space, resolution, preprocessing and samples of all participants, nothing where they differ."""
    each = [person.summary.data for person in people]
    found = {
        "space": [str(data.get("bids_space") or data["space"]) for data in each],
        "resolution": [data.get("resolution", "") for data in each],
        "prepared_with": [data.get("prepared_with", {}) for data in each],
        "unit": [data.get("unit", "volumes") for data in each],
    }
    known = {name: values[0] if all(v == values[0] for v in values) else "" for name, values in found.items()}
    return {**known, "processing": _common_steps([person.summary.processing for person in people])}


def _common_steps(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How all were processed, with the volumes left out of all together; nothing where they differ."""
    if any(_comparable(steps) != _comparable(each[0]) for steps in each):
        return {}
    columns = [
        column for column in each[0].get("confound_columns") or ()
        if all(column in (steps.get("confound_columns") or ()) for steps in each)
    ]  # fmt: skip
    totals = {name: sum(steps.get(name) or 0 for steps in each) for name in LEFT_OUT}
    common = {**each[0], **totals, "confound_columns": columns}
    if len({steps.get("lag_trs") for steps in each}) > 1:
        del common["lag_trs"]
    return common


def _comparable(steps: Mapping[str, Any]) -> dict[str, Any]:
    """What is the same for participants processed alike; of cosine00, cosine01, ... one may have more."""
    kinds = sorted({re.sub(r"_?\d+$", "", name) for name in steps.get("confounds") or ()})
    return {name: step for name, step in steps.items() if name not in _OF_ONE} | {"confounds": kinds}
