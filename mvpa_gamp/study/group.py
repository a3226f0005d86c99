"""The group level: what the participants' folders say together; it computes no fit."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from mvpa_gamp._version import __version__
from mvpa_gamp.imaging.disk import WriteError, read_record, remove_recorded
from mvpa_gamp.imaging.names import shared_entities
from mvpa_gamp.report.group_answers import group_captions, group_closing, group_tables
from mvpa_gamp.report.group_facts import read_group
from mvpa_gamp.report.group_page import build_group_page
from mvpa_gamp.report.inference import tests_of
from mvpa_gamp.results.files import MISSING, DamagedFile, number, read_json, read_tsv, write_json, write_tsv
from mvpa_gamp.results.group_tables import (
    ACCURACY_COLUMNS,
    DIFFERENCE_COLUMNS,
    SUMMARY_COLUMNS,
    OwnTest,
    Score,
    accuracy_row,
    difference_rows,
    group_rows,
    name_of_test,
)
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results, ResultsError, missing_files, verify
from mvpa_gamp.results.tables import AVERAGE
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import LEFT_OUT
from mvpa_gamp.study.ending import UNREADABLE, StudyError, one_line
from mvpa_gamp.study.group_designs import balanced_by_run, design_facts, own_test, write_group_designs
from mvpa_gamp.study.group_maps import write_group_maps
from mvpa_gamp.study.lock import FolderLock
from mvpa_gamp.study.output import PARTICIPANTS, check_kind, check_plain
from mvpa_gamp.study.participants import stripped


def run_group(root: Path, labels: Sequence[str] | None, alpha: float, console: Console) -> int:
    """Tables, mean maps and page over the participants in ``root``; 1 when one of them is not finished."""
    if not 0 < alpha < 1:
        raise StudyError(f"--alpha: expected a level between 0 and 1, got {alpha}. 0.05 is usual.")
    folder = ResultsFolder(root)
    if not folder.config.is_file():
        raise StudyError(
            f"group: {root} holds no results of the participant level (its config.toml is missing). "
            "Run the participant level first."
        )
    check_plain(root, "OUT")
    check_kind(root, "OUT", PARTICIPANTS)
    with FolderLock(folder, uuid4().hex) as lock:
        lock.take()
        try:
            return _write_group(root, labels, alpha, console)
        except (StudyError, WriteError):
            raise
        except UNREADABLE as error:
            remove_group(folder)  # of which something may be written
            raise StudyError(
                f"group: a file of a participant in {root} is missing or damaged ({one_line(error)}). Write "
                "the files again from the stored fits: the participant level with --resume."
            ) from error


def _write_group(root: Path, labels: Sequence[str] | None, alpha: float, console: Console) -> int:
    """The same, once nobody else writes there."""
    people, unfinished = read_participants(root, labels)
    folder = ResultsFolder(root, shared_entities(person.folder.entities for person in people))
    console.log_to(folder.log)
    for sentence in unfinished:
        console.note(sentence, level=0)
    remove_group(folder)
    scores = [score for person in people for score in scores_of(person)]
    rows = group_rows(scores, alpha)
    write_tsv(
        folder.group_table("accuracy"), ACCURACY_COLUMNS, [accuracy_row(score, alpha) for score in scores]
    )
    write_tsv(folder.group_table("summary"), SUMMARY_COLUMNS, rows)
    write_tsv(folder.group_table("differences"), DIFFERENCE_COLUMNS, difference_rows(scores))
    write_group_designs(folder, people, alpha)
    maps, sentences = write_group_maps(folder, people, alpha)
    skipped = _skipped(folder, people)
    notes = [
        *unfinished, *skipped.values(), *mixed(people), *sentences,
        *_powerless(scores, alpha, people), *_few_participants(rows, alpha),
    ]  # fmt: skip
    study = _study(people, scores, alpha, maps, notes) | {"entities": dict(folder.entities)}
    write_json(folder.group, study)
    build_group_page(root)
    group = read_group(root)
    console.result("\n\n".join(group_tables(group)), always=True)
    for caption in group_captions(group):
        console.note(caption)
    for note in [*_skipped_line(skipped), *notes[len(unfinished) + len(skipped) :]]:
        console.note(note)
    for line in group_closing(group):
        console.note(line)
    return 1 if unfinished else 0


def read_participants(root: Path, labels: Sequence[str] | None) -> tuple[list[Results], list[str]]:
    """The finished participants, and a sentence about each one that is not."""
    found = sorted(path.name.removeprefix("sub-") for path in root.glob("sub-*") if path.is_dir())
    wanted = stripped(labels) or found
    missing = [label for label in wanted if label not in found]
    if missing:
        raise StudyError(
            f"--participant-label: {root} has no results of {', '.join(missing)}. Run the participant "
            "level first."
        )
    people, sentences = [], []
    for label in wanted:
        try:
            people.append(_finished(root / f"sub-{label}"))
        except ResultsError as error:
            sentences.append(f"sub-{label} is not part of the group: {error}")
    if not people:
        reason = f" ({sentences[0]})" if sentences else ""
        raise StudyError(
            f"group: expected finished participants in {root}, found none{reason}. Run the participant "
            "level first."
        )
    return people, sentences


def remove_group(folder: ResultsFolder) -> None:
    """Remove the files of an earlier group, perhaps of other participants; what others put there stays."""
    record = read_record(folder.root)
    if record is not None:
        for names in ("group/", "group_", "figures/group_"):
            remove_recorded(folder.root, record, names)


def _finished(home: Path) -> Results:
    """The results of a participant, all of whose files are there and as they were written."""
    person = verify(home, say=lambda sentence: None)  # an edited description is no matter of the group
    missing = missing_files(person)
    if missing:
        raise ResultsError(
            f"{missing[0].name} is missing ({len(missing)} in all). Run "
            "the participant level again with --resume."
        )
    return person


def scores_of(person: Results) -> list[Score]:
    """The scores of every cell of a participant that did not fail."""
    return [_score(person, *cell) for cell in person.cells()]


def _score(person: Results, subject: str, contrast: str, method: str) -> Score:
    row = person.row(subject, contrast, method)
    predictions = read_tsv(person.folder.cell_table(subject, contrast, method, "predictions"))
    return Score(
        subject=subject,
        contrast=contrast,
        comparison=row["comparison"],
        method=method,
        accuracy=1 - row["error_percent"] / 100,
        chance=1 - row["chance_error_percent"] / 100,
        by_run=balanced_by_run(predictions),
        auc=row["auc"],
        own=_own_test(person, subject, contrast, method),
    )


def _own_test(person: Results, subject: str, contrast: str, method: str) -> OwnTest | None:
    """The participant's permutation test, None where there was none."""
    path = person.folder.cell_table(subject, contrast, method, "permutations")
    for row in person.inference_rows():
        if (row["contrast"], row["method"]) == (contrast, method) and row.get("p_value", MISSING) != MISSING:
            score, p = number(row["accuracy_percent"]) / 100, number(row["p_value"])
            return own_test(path, score, p, number(row["smallest_p_value"]))
    return None


def _skipped(folder: ResultsFolder, people: Sequence[Results]) -> dict[str, str]:
    """Participants whom the participant level could not analyse, each with a sentence."""
    done = {subject for person in people for subject in person.subjects}
    reasons = {}
    for path in sorted((folder.root / "logs").glob("sub-*_skipped.json")):
        label = path.name.removeprefix("sub-").removesuffix("_skipped.json")
        if label not in done:
            reasons[f"sub-{label}"] = f"sub-{label} was skipped at the participant level: {_reason(path)}"
    return reasons


def _reason(path: Path) -> str:
    """Why a participant was skipped, if its note can be read."""
    try:
        note = read_json(path)
    except DamagedFile as error:
        return str(error)
    known = note.get("reason") if isinstance(note, dict) else None
    return known if isinstance(known, str) else f"{path.name} does not say why."


def _skipped_line(skipped: Iterable[str]) -> list[str]:
    """Who was skipped, in one line for the terminal: the participant level has said why."""
    names = ", ".join(skipped)
    return [f"Skipped at the participant level: {names} (reasons on the page)."] if names else []


def _powerless(scores: Sequence[Score], alpha: float, people: Sequence[Results]) -> list[str]:
    """Methods whose test of a participant cannot reach alpha, each with its participants."""
    few: dict[tuple[str, int, float], list[str]] = {}
    for score in scores:
        if not score.testable(alpha):
            who = few.setdefault((score.method, score.runs, score.smallest_p), [])
            who += [f"sub-{score.subject}"] * (f"sub-{score.subject}" not in who)
    labels, word = _labels(people), people[0].fold_word
    return [
        f"{_cannot(who, len(people))} be significant by {labels[method]}: with {runs} {word}s the smallest "
        f"p-value is {least:.3g}. Such participants are not counted in the prevalence; a permutation test "
        f"(--permutations at the participant level; GAMP methods, svm and lda) needs fewer {word}s."
        for (method, runs, least), who in few.items()
    ]


def _cannot(some: Sequence[str], count: int) -> str:
    """Participants by name, or all of them in a word, and that they cannot."""
    return f"None of the {count} participants can" if len(some) == count > 1 else f"{', '.join(some)} cannot"


def _few_participants(rows: Sequence[dict[str, Any]], alpha: float) -> list[str]:
    """A sentence where there are too few participants for a sign-flip test at alpha."""
    few = [row for row in rows if row["signflip_smallest_p"] and row["signflip_smallest_p"] > alpha]
    if not few:
        return []
    n, smallest = few[0]["participants"], few[0]["signflip_smallest_p"]
    needed = int(np.ceil(-np.log2(alpha)))
    if n == 1:
        return [
            "There is only one participant: its numbers are repeated here, and nothing can be tested across "
            f"participants. At a level of {alpha:g} the sign-flip test needs {needed} participants."
        ]
    return [
        f"The sign-flip test of {n} participants cannot give a p-value below {smallest:.3g}: "
        f"at a level of {alpha:g} it needs {needed} participants."
    ]


def _labels(people: Sequence[Results]) -> dict[str, str]:
    """Methods of any participant, by name."""
    return {name: label for person in people for name, label in person.labels.items()}


def _described(people: Sequence[Results]) -> list[dict[str, Any]]:
    """What every method does and who described it, for the methods text."""
    kept = ("name", "label", "description", "reference", "short_reference")
    methods = {method["name"]: method for person in people for method in person.methods}
    return [{name: method[name] for name in kept} for method in methods.values()]


def _cross_validation(people: Sequence[Results]) -> str:
    """What is held out in a fold where that is the same for all, else nothing."""
    words = {person.fold_word for person in people}
    return words.pop() if len(words) == 1 else ""


def _study(
    people: Sequence[Results],
    scores: Sequence[Score],
    alpha: float,
    maps: list[dict[str, str]],
    notes: list[str],
) -> dict[str, Any]:
    """What the page needs besides the tables."""
    return {
        "package": "mvpa_gamp",
        "version": __version__,
        "phantom": any(person.phantom for person in people),
        "subjects": [subject for person in people for subject in person.subjects],
        "alpha": alpha,
        **in_common(people),
        "test": name_of_test(scores),
        "compared_with": sorted({test for person in people for test in tests_of(person)}),
        "methods": _labels(people),
        "described": _described(people),
        "cross_validation": _cross_validation(people),
        "comparisons": {s.contrast: s.comparison for s in scores if s.contrast != AVERAGE},
        "sides": {task["contrast"]: (task["positive"], task["negative"])
                  for person in people for task in person.tasks},
        **design_facts(people),
        "maps": maps,
        "notes": notes,
    }  # fmt: skip


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
