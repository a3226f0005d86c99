"""What is answered first: how accurate, how sure, which voxels, how stable, where, in which file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.markup import file_link, text
from mvpa_gamp.report.printed import significant
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import selects

# Which method answers is settled before any result is seen: choosing the most accurate one would make its
# accuracy look better than it is. The order is that of the measured table in the documentation.
PREFERRED = (
    "gamp-sbg-lr", "gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr", "gamp-l1-lr-cv",
    "l1-lr-cv",
)  # fmt: skip
_PEAKS = 3  # clusters named in the answer
NOBODY = (
    "No single voxel can be named: too few samples, or too many voxels that say the same. The prediction "
    "rests "
    "on all voxels together; read the accuracy and the pattern."
)
EVERYBODY = "This method uses every voxel and selects none."


@dataclass(frozen=True)
class Answer:
    """The facts about one comparison, by the method that answers for it."""

    method: str
    measure: str  # "correct", or what leads where categories are unequal
    accuracy: float
    se: float
    chance: float
    folds: int
    p: float  # NaN where nothing was permuted
    p_holm: float
    permutations: int
    voxels: int  # selected by the fit to all runs
    n_voxels: int
    shared: float  # percent of voxels that two folds share, NaN where there is no choice to agree on
    shared_by_chance: float
    peaks: tuple[str, ...]


def answering(results: Results, subject: str, contrast: str) -> str | None:
    """The method that answers for a comparison, None where every method failed."""
    finished = results.finished(subject, contrast)
    return next((name for name in (*PREFERRED, *finished) if name in finished), None)


def answer(results: Results, subject: str, contrast: str, clusters: list[dict[str, str]]) -> Answer | None:
    """The facts about a comparison, from the tables of the folder."""
    method = answering(results, subject, contrast)
    if method is None:
        return None
    row = results.row(subject, contrast, method)
    test = _test(results, contrast, method)
    mine = [each for each in clusters if (each["contrast"], each["method"]) == (contrast, method)]
    chose = selects(row)
    measure, *names = leading_columns(results)
    accuracy, se, chance = (float(row[name]) for name in names)
    return Answer(
        method=method,
        measure=measure,
        accuracy=accuracy,
        se=se,
        chance=chance,
        folds=int(row["folds"]),
        p=test["p"],
        p_holm=test["holm"],
        permutations=int(test["n"]),
        voxels=int(results.refit(subject, contrast, method)["voxels"]),
        n_voxels=int(results.study["data"]["n_voxels"]),
        shared=row["consistency_percent"] if chose else math.nan,
        shared_by_chance=row["chance_consistency_percent"] if chose else math.nan,
        peaks=tuple(_place(each) for each in mine[:_PEAKS]),
    )


def leading_columns(results: Results) -> tuple[str, str, str, str]:
    """The word after a percentage, and the columns of the accuracy, its standard error and chance."""
    lead = results.leading_measure
    if lead.higher_is_better:
        return lead.name, lead.column, lead.spread, lead.chance
    return "correct", "accuracy_percent", "accuracy_se_percent", "chance_percent"


def _test(results: Results, contrast: str, method: str) -> dict[str, float]:
    """P-value, its Holm correction and the number of permutations; NaN, NaN, 0 where there was no test."""
    for row in results.inference_rows():
        if (row["contrast"], row["method"]) == (contrast, method) and row.get("p_value", MISSING) != MISSING:
            holm = number(row["p_value_holm"])
            return {"p": number(row["p_value"]), "holm": holm, "n": number(row["permutations"])}
    whole = results.classes.get("permutation")
    if whole and len(results.tasks) == 1:
        return {"p": whole["pvalue"], "holm": math.nan, "n": whole["n"]}
    return {"p": math.nan, "holm": math.nan, "n": 0}


def _place(cluster: Mapping[str, str]) -> str:
    """Coordinates of a cluster's peak, and its region where one is known."""
    at = " ".join(whole(number(cluster[f"peak_{axis}_mm"])) for axis in "xyz")
    region = cluster.get("region", MISSING)
    return at if region in (MISSING, "") else f"{at} ({region})"


def whole(value: float) -> str:
    """A coordinate in whole mm, halves upwards as in the viewer."""
    return str(math.floor(value + 0.5)).replace("-", "−")


def sentence(found: Answer, fold_word: str) -> str:
    """The answer in one sentence, without the comparison's name."""
    return f"{_correct(found)} ({_sure(found, fold_word)}); {_which(found)}{_where(found)}."


def _correct(found: Answer) -> str:
    return f"{found.accuracy:.1f} % {found.measure}"


def _sure(found: Answer, fold_word: str) -> str:
    chance = f"chance {found.chance:.0f} %"
    if found.permutations:
        return f"{chance}, {p_words(found.p)}, {found.permutations:,} permutations"
    if math.isnan(found.se):
        return f"{chance}, not tested"
    return f"{chance}, standard error {found.se:.1f} over {found.folds} {fold_word}s, not tested"


def p_words(p: float) -> str:
    """A p-value in two digits."""
    return f"p = {p:.2g}"


def _which(found: Answer) -> str:
    if found.voxels == 0:
        return "no single voxel can be named (too few samples, or too many voxels that say the same)"
    if found.voxels == found.n_voxels:
        return "all voxels are used, none selected"
    chance = significant(found.shared_by_chance)
    shared = f", two folds share {found.shared:.0f} % of them (chance {chance} %)"
    shared = "" if math.isnan(found.shared) else shared
    return f"{found.voxels:,} voxel{'s' * (found.voxels != 1)}{shared}"


def _where(found: Answer) -> str:
    if not found.peaks or found.voxels == found.n_voxels:
        return ""
    clusters = "largest clusters at" if len(found.peaks) > 1 else "at"
    return f"; {clusters} {', '.join(found.peaks)} mm"


def facts_box(results: Results, subject: str, contrast: str, found: Answer) -> str:
    """The same facts one by one, each with what it has to be compared with."""
    entries = [
        ("How accurate", _correct(found), _accuracy_note(found, results.fold_word)),
        ("How sure", *_test_words(found, results)),
        ("Which voxels", *_voxel_words(found)),
        ("How stable", *_stability_words(found)),
        ("Where", *_place_words(found, results)),
    ]
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(said)}<small>{text(note)}</small></dd></div>"
                    for name, said, note in entries)  # fmt: skip
    files = _map_links(results, subject, contrast, found.method)
    items += f"<div><dt>Which files</dt><dd>{files}</dd></div>"
    return f'<dl class="answer">{items}</dl>'


def _accuracy_note(found: Answer, fold_word: str) -> str:
    spread = "" if math.isnan(found.se) else f" ± {found.se:.1f} (standard error)"
    return f"chance {found.chance:.0f} %; mean over {found.folds} held-out {fold_word}s{spread}"


def _test_words(found: Answer, results: Results) -> tuple[str, str]:
    if not found.permutations:
        how = "add --permutations 200 --resume" if results.linked else "permutation_test(200)"
        return "not tested", f"the standard error alone is no test; {how}"
    corrected = "" if math.isnan(found.p_holm) or len(results.tasks) == 1 else (
        f"; {found.p_holm:.2g} after Holm's correction for {len(results.tasks)} comparisons"
    )  # fmt: skip
    least = f"; the smallest possible is {1 / (1 + found.permutations):.2g}"
    return p_words(found.p), f"{found.permutations:,} permutations of the labels{least}{corrected}"


def _voxel_words(found: Answer) -> tuple[str, str]:
    if found.voxels == 0:
        return "none can be named", f"of {found.n_voxels:,}; the lines below say why"
    if found.voxels == found.n_voxels:
        return "all", f"{found.n_voxels:,}; this method selects none"
    share = 100 * found.voxels / found.n_voxels
    return f"{found.voxels:,} selected", f"{significant(share)} % of {found.n_voxels:,}, fit to all data"


def _stability_words(found: Answer) -> tuple[str, str]:
    if math.isnan(found.shared):
        return "–", "no selection whose folds could be compared"
    return f"{found.shared:.0f} % shared", f"by two folds; {significant(found.shared_by_chance)} % by chance"


def _place_words(found: Answer, results: Results) -> tuple[str, str]:
    if not found.peaks or found.voxels == found.n_voxels:
        return "see the maps", "no clusters of selected voxels; the pattern shows where signals differ"
    others = f"then {'; '.join(found.peaks[1:])}; " if len(found.peaks) > 1 else ""
    return f"{found.peaks[0]} mm", f"{others}peaks (x y z) of the largest clusters, space: {_space(results)}"


def _space(results: Results) -> str:
    data = results.study["data"]
    return str(data.get("bids_space") or data["space"])


def _map_links(results: Results, subject: str, contrast: str, method: str) -> str:
    """The maps to use first: what was selected, the weights there, and the pattern."""
    folder, desc = results.folder, entity(method)
    files = {
        "selected voxels": folder.selected_mask(subject, contrast, method),
        "their weights": folder.statmap(subject, contrast, f"{desc}Selected", "weight"),
        "all weights": folder.statmap(subject, contrast, desc, "weight"),
        "pattern": folder.statmap(subject, contrast, desc, "pattern"),
    }
    there = {words: path for words, path in files.items() if is_there(path)}
    return "<br>".join(file_link(path, folder.root, results.linked, words) for words, path in there.items())


def facts(results: Results, row: Mapping[str, Any]) -> str:
    """Accuracy with its standard error, as tables show it."""
    _, column, spread, _ = leading_columns(results)
    return f"{row[column]:.1f} %" + ("" if math.isnan(row[spread]) else f" ± {row[spread]:.1f}")
