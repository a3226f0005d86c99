"""What a paper should report about multivariate modelling (COBIDAS), filled in from the run."""

import math
from collections.abc import Callable
from typing import Any

from mvpa_gamp.report.answers import sentence
from mvpa_gamp.report.facts import leading_columns, participant_facts
from mvpa_gamp.report.inference import all_compared
from mvpa_gamp.report.methods_text import selected_words
from mvpa_gamp.report.terminal import class_lines, cross_lines
from mvpa_gamp.report.words import (
    compared_classes,
    compared_with,
    comparison_words,
    held_out_word,
    words_of,
)
from mvpa_gamp.results.files import read_json, write_tsv
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE

_COLUMNS = ("group", "item", "reported", "from_the_run")
_YOURS = "To be added by the authors."
_BY_METHOD = "As the description of each method says."
_SENTENCES = 6  # comparisons that have a sentence each; more are in summary.tsv
_TRANSFORMS = (
    "trial_model", "hrf_model", "drift_model", "smoothing_fwhm", "high_pass", "confounds", "detrend",
    "standardize", "scaling", "lag_trs", "non_steady_state_volumes", "scrubbed_volumes",
)  # fmt: skip


def write_cobidas(results: Results) -> None:
    """Write ``cobidas_multivariate.tsv``."""
    write_tsv(results.folder.cobidas, _COLUMNS, cobidas_rows(results))


def cobidas_rows(results: Results) -> list[dict[str, str]]:
    """Group, item, what is reported, and whether the run could say it."""
    rows, w = [], words_of(results)
    for (group, item), say in _ITEMS.items():
        said = w.said(say(results))
        known = "no" if said.startswith(_YOURS) else "yes"
        subject = f"PHANTOM, simulated. {said}" if results.phantom and known == "yes" else said
        rows.append({"group": group, "item": item, "reported": subject, "from_the_run": known})
    return rows


def _target(results: Results) -> str:
    pairs = comparison_words(results.tasks)
    return f"Discrete: which of two categories was shown: {pairs}.{_together(results)}{_crosses(results)}"


def _together(results: Results) -> str:
    """Many classes, where they were decoded together."""
    names = results.classes.get("names", ())
    return f" Which of {len(names)} classes was shown: {', '.join(names)}." if len(names) > 2 else ""


def _crosses(results: Results) -> str:
    crosses = results.cross.get("crosses", ())
    return f" Trained → tested: {'; '.join(each['label'] for each in crosses)}." if crosses else ""


def _samples(results: Results) -> str:
    data = results.summary.data
    known = [task for task in results.tasks if "positive_volumes" in task]
    counts = "; ".join(dict.fromkeys(
        f"{task[side]} {task[f'{side}_volumes']}" for task in known for side in ("positive", "negative")
    ))  # fmt: skip
    word = held_out_word(results.summary)
    runs = "without runs" if data["n_runs"] is None else f"in {data['n_runs']} {word}s"
    return f"{data['n_samples']:,} {data.get('unit', 'volumes')} {runs}. Samples per category: {counts}."


def _features(results: Results) -> str:
    data = results.summary.data
    space = data.get("bids_space") or data["space"]
    size = f", {data['resolution']}" if data.get("resolution") else ""
    return f"{data['n_voxels']:,} voxels of desc-analysed_mask; space: {space}{size}; no dimension reduction."


def _preparation(results: Results) -> str:
    steps: dict[str, Any] = dict(results.summary.processing)
    said = [
        f"{name.replace('_', ' ')}: {_plain(steps[name])}"
        for name in _TRANSFORMS
        if steps.get(name) is not None
    ]
    whitened = (
        " Within each fold: noise whitened with a covariance estimated on its training runs only."
        if steps.get("whiten")
        else ""
    )
    word = held_out_word(results.summary)
    return f"Within each {word}, without use of labels: {'; '.join(said) or 'none'}.{whitened}"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _classifiers(results: Results) -> str:
    return " ".join(
        f"{m['label']}: {m['description'].rstrip('.')} ({m['short_reference']})." for m in results.methods
    )


def _tuning(results: Results) -> str:
    return (
        "On training data only, as the description of each method says. Values of every fold "
        "are in the folds tables; the settings of every method are in summary.json."
    )


def _validation(results: Results) -> str:
    return (
        f"{results.summary.cross_validation.rstrip('.')}. Folds: "
        f"{int(max(row['folds'] for row in results.rows if row['contrast'] != AVERAGE))}. No "
        "held-out label is used for parameters, standardisation or selection; folds share training data."
    )


def _metric(results: Results) -> str:
    chance = sorted({f"{row['chance_percent']:.1f}" for row in results.rows if row["status"] == "ok"})
    if chance and "balanced" in results.leading_measure.name:
        return (
            f"Balanced accuracy: mean over held-out {results.fold_word}s of the mean over both categories, "
            "with its standard error; chance is 50 %."
        )
    return (
        f"Accuracy: mean over held-out {results.fold_word}s with its standard error; chance is the share of "
        "the more "
        f"frequent category ({' to '.join(dict.fromkeys((chance[0], chance[-1])))} %)."
        if chance
        else "No fit succeeded."
    )


def _performance(results: Results) -> str:
    said = [*_of_classes(results), *_of_crosses(results)]
    if len(results.tasks) > _SENTENCES:
        return " ".join([*said, *_of_many(results)])
    for subject in results.subjects:
        found = participant_facts(results, subject)
        for task in results.tasks:
            facts = found[task["contrast"]]
            said.append(f"{task['label']}: {'failed' if facts is None else sentence(facts)}")
    return " ".join(said)


def _of_many(results: Results) -> list[str]:
    """The averages of every method, with the lowest and the highest comparison."""
    measure, column, *_ = leading_columns(results)
    out = []
    for row in (row for row in results.rows if row["contrast"] == AVERAGE):
        cells = [cell for cell in results.cells() if cell[2] == row["method"]]
        mine = [results.row(*cell)[column] for cell in cells]
        if mine:
            out.append(
                f"{results.labels[row['method']]}: {row[column]:.1f} % {measure} on average over {len(mine)} "
                f"comparisons, {min(mine):.1f} to {max(mine):.1f} %."
            )
    return [*out, "Every comparison is in summary.tsv."]


def _of_classes(results: Results) -> list[str]:
    """All classes together, by each method."""
    if len(results.classes.get("names", ())) < 3 or "recall" not in results.classes:
        return []
    return [f"{line}." for line in class_lines(results)]


def _of_crosses(results: Results) -> list[str]:
    return [f"{line}." for line in cross_lines(results)]


def _classwise(results: Results) -> str:
    where = "confusion.tsv counts predictions by category; predictions.tsv has every prediction."
    return where + (" Recall and precision: classes.tsv." if _of_classes(results) else "")


def _significance(results: Results) -> str:
    if not results.inference.get("permutations"):
        whole = results.classes.get("permutation")
        return (
            "Not tested."
            if not whole
            else f"Labels: {compared_with([compared_classes(whole)])}; p = {whole['pvalue']:.3g}."
        )
    holm = "p-values in inference.tsv, also Holm-corrected for the comparisons of a method"
    how = f"labels exchanged {results.exchanged}, all of the cross-validation repeated"
    said = all_compared(results)
    return f"{said[0].upper()}{said[1:]}, {how}; {holm}."


def _selection(results: Results) -> str:
    extra = []
    if results.inference.get("max_inclusion"):
        extra.append("Voxels: family-wise p by the largest inclusion probability of each permutation.")
    if rate := results.inference.get("fdr"):
        extra.append(f"Voxels at an expected false-discovery rate of {rate:g}, checked with planted effects.")
    if results.summary.information:
        extra.append(
            "Voxels that carry information: step-down maxima over permutations, family-wise p ≤ 0.05."
        )
    return " ".join(filter(None, [selected_words(results.labels), *extra])) or _BY_METHOD


def _stability(results: Results) -> str:
    said = []
    for row in results.rows:
        if row["contrast"] == AVERAGE and not math.isnan(row["consistency_percent"]):
            said.append(f"{results.labels[row['method']]} {row['consistency_percent']:.0f} % "
                        f"(chance {row['chance_consistency_percent']:.2g} %)")  # fmt: skip
    return (
        "Consistency, the mean Jaccard index of the voxels selected in two folds: "
        + ("; ".join(said) or "no method selects")
        + "."
    )


def _interpretation(results: Results) -> str:
    return (
        "Weights are given with activation patterns (Haufe et al., 2014), because a weight is not "
        "activation; "
        "inclusion probabilities show which voxels the classifier needs given the others."
    )


def _software(results: Results) -> str:
    versions = read_json(results.folder.environment)
    named = ", ".join(
        f"{name} {versions[name]}"
        for name in ("python", "numpy", "scipy", "scikit-learn", "nilearn")
        if name in versions
    )
    seed = "" if results.summary.seed is None else f" Seed {results.summary.seed}."
    return f"mvpa_gamp {results.summary.version}; {named}.{seed} Settings in config.toml."


def _yours(what: str) -> Callable[[Results], str]:
    return lambda results: f"{_YOURS} {what}"


_ITEMS: dict[tuple[str, str], Callable[[Results], str]] = {
    ("target", "What is predicted, and its type"): _target,
    ("target", "Number of samples, in total and per class"): _samples,
    ("target", "Participants, and how comparisons were chosen"): _yours(
        "Describe the participants, and whether comparisons were planned before the data were seen."
    ),
    ("features", "Features, and how they were chosen"): _features,
    ("features", "Preprocessing of features, and whether it used test data"): _preparation,
    ("learning", "Learning methods, with references"): _classifiers,
    ("learning", "How their parameters were set"): _tuning,
    ("evaluation", "How training and test data were separated"): _validation,
    ("evaluation", "Performance measure and chance level"): _metric,
    ("evaluation", "Performance found"): _performance,
    ("evaluation", "Performance by class"): _classwise,
    ("evaluation", "How performance was tested"): _significance,
    ("interpretation", "How features were selected or tested"): _selection,
    ("interpretation", "How stable the selected features are"): _stability,
    ("interpretation", "How to interpret weights and maps"): _interpretation,
    ("reproduction", "Software, versions and seed"): _software,
    ("reproduction", "Where data, code and maps are shared"): _yours("Addresses of data, code and maps."),
}  # fmt: skip
