"""A methods paragraph ready for a paper, written from what a run recorded."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mvpa_gamp.methods.fold_fits import ZINIEL_2015
from mvpa_gamp.report.inference import all_compared, floor_words
from mvpa_gamp.report.words import (
    compared_classes,
    compared_with,
    comparison_words,
    held_out_word,
    processing_words,
    rest_words,
    sentence,
)
from mvpa_gamp.results.files import read_json
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.summary import Summary

_HAXBY = (
    "Haxby JV, Gobbini MI, Furey ML, Ishai A, Schouten JL, Pietrini P (2001). Distributed and overlapping "
    "representations of faces and objects in ventral temporal cortex. Science 293, 2425–2430. "
    "doi:10.1126/science.1063736"
)
_SNOEK = (
    "Snoek L, Miletić S, Scholte HS (2019). How to control for confounds in decoding analyses of "
    "neuroimaging data. NeuroImage 184, 741–760. doi:10.1016/j.neuroimage.2018.09.074"
)
HAUFE = (
    "Haufe S, Meinecke F, Görgen K, Dähne S, Haynes JD, Blankertz B, Bießmann F (2014). On the "
    "interpretation of weight vectors of linear models in multivariate neuroimaging. NeuroImage 87, 96–110. "
    "doi:10.1016/j.neuroimage.2013.10.067"
)
_NOGUEIRA = (
    "Nogueira S, Sechidis K, Brown G (2018). On the stability of feature selection algorithms. "
    "Journal of Machine Learning Research 18(174), 1–54."
)
_KUNCHEVA = (
    "Kuncheva LI (2007). A stability index for feature selection. Proceedings of the IASTED International "
    "Conference on Artificial Intelligence and Applications, 390–395."
)
_MUMFORD = (
    "Mumford JA, Turner BO, Ashby FG, Poldrack RA (2012). Deconvolving BOLD activation in event-related "
    "designs for multivoxel pattern classification analyses. NeuroImage 59, 2636–2643. "
    "doi:10.1016/j.neuroimage.2011.08.076"
)
_PACKAGES = {
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
    "nilearn": "nilearn",
}
_BUDGET = (
    "VAMP selects a budget: as many voxels as the posterior inclusion probabilities sum to, those with the "
    "largest. The size of this sum follows from the rate of the prior, which is fixed: it is no estimate of "
    "how many voxels carry the difference."
)
_DENSE = ("svm", "lda")  # every voxel has a weight


def selected_words(methods: Iterable[str]) -> str:
    """What "selected" means for these methods."""
    known = [name for name in methods if name not in _DENSE]
    if budget := [name for name in known if name.startswith("vamp")]:
        others = selected_words(name for name in known if name not in budget)
        return " ".join(filter(None, [_BUDGET, others]))
    if not known:
        return ""
    if not any(name.startswith("gamp") for name in known):
        return "A voxel is selected if its weight is not zero."
    return (
        "A voxel is selected if its weight is not zero or, for sum-product GAMP, if its posterior inclusion "
        "probability is above one half; sum-product GAMP predicts from the posterior means of all voxels, "
        "selected or not."
    )


def methods_paragraphs(results: Results) -> list[str]:
    """Plain-text paragraphs: data, processing, validation, methods, measures, software."""
    summary = results.summary
    return [
        _data(summary),
        processing_words(summary.processing, summary.data.get("unit", "volumes")),
        _validation(results),
        " ".join(_method(method) for method in results.methods) + _intercepts(results.methods),
        _measures(results),
        *design_paragraphs(results),
        *inference_text(results),
        *regions_text(results),
        _software(results),
    ]


def _software(results: Results) -> str:
    """The versions that matter, and the seed."""
    path = results.folder.environment
    known = read_json(path) if path.is_file() else {}
    others = ", ".join(f"{words} {known[name]}" for name, words in _PACKAGES.items() if name in known)
    seed = "" if results.summary.seed is None else f" Random seed: {results.summary.seed}."
    return f"Analyses used mvpa_gamp {results.summary.version}{f' with {others}' if others else ''}.{seed}"


def _mumford(results: Results) -> list[str]:
    """Where separate models of trials are described."""
    return [_MUMFORD] if results.summary.processing.get("trial_model") == "lss" else []


def references(results: Results) -> list[str]:
    """The works that the paragraphs lean on."""
    data = [_HAXBY] if study_is_haxby(results.summary) or results.phantom else []
    described = [method["reference"] for method in results.methods]
    coupled = [HASTIE] if len(results.classes.get("names", ())) > 2 else []
    folds = [_SNOEK] if results.summary.processing.get("fold_confounds") else []
    works = [ZINIEL_2015, *data, *described, *folds, HAUFE, _NOGUEIRA, _KUNCHEVA]
    works += [*inference_references(results), *coupled, *_mumford(results)]
    return list(dict.fromkeys(works))


def study_is_haxby(summary: Summary) -> bool:
    """Whether the volumes are those of Haxby et al. (2001), as far as the run knows."""
    return summary.data.get("source") == "haxby"


def _data(summary: Summary) -> str:
    """What was decoded."""
    data = summary.data
    runs = "" if data["n_runs"] is None else f" in {data['n_runs']} {held_out_word(summary)}s"
    space = data.get("bids_space") or data.get("space", "unknown")
    parts = [] if space in ("unknown", "unnamed") else [f"space: {space}"]
    parts += [data["resolution"]] if data.get("resolution") else []
    where = f" ({', '.join(parts)})" if parts else ""
    text = (
        f"{sentence(data['description'])} {data['n_voxels']:,} voxels of {data['n_samples']:,} "
        f"{data.get('unit', 'volumes')}{runs} entered the analysis{where}{rest_words(data)}."
    )
    if summary.phantom:
        text = "The data are simulated (a phantom); no human was measured. " + text
    return text


def _validation(results: Results) -> str:
    """Comparisons and folds."""
    names, word = comparison_words(results.tasks), results.fold_word
    how = (
        "leave-one-run-out cross-validation: each run was predicted by a classifier trained on all other runs"
        if word == "run" and results.summary.data.get("counted", "run") == "run"
        else f"cross-validation. {results.summary.cross_validation.rstrip('.')}"
    )
    coupled = (
        " Probabilities of all pairs of classes were coupled (Hastie and Tibshirani, 1998) and the most "
        "probable class was predicted." if len(results.classes.get("names", ())) > 2 else ""
    )  # fmt: skip
    return (
        f"Classifiers were trained for {len(results.tasks)} pairwise "
        f"comparison{'s' * (len(results.tasks) > 1)} ({names}) and evaluated by {how}; parameters were "
        f"tuned on the training {word}s only. Accuracy is the mean over held-out {word}s, with the "
        f"standard error across {word}s; since folds share training data, {word}s are not independent and "
        f"the standard error is approximate.{coupled}{_weighted(results)}"
    )


def _weighted(results: Results) -> str:
    """How unequal categories were treated, in fitting and in judging."""
    said = ""
    if results.summary.processing.get("class_weight"):
        said += (
            " In training, samples were weighted so that both categories had the same total weight in every "
            "fold (weights inversely proportional to the number of training samples)."
        )
    if results.leading_measure.name == "balanced accuracy":
        said += (
            " As categories were not equally frequent, we report balanced accuracy, the mean of the "
            "accuracies within both categories (chance: 50 %)."
        )
    return said


def _method(method: Mapping[str, Any]) -> str:
    """What a method does, and who described it."""
    return f"{method['label']} ({method['short_reference']}): {sentence(method['description'])}"


def _intercepts(methods: Sequence[Mapping[str, Any]]) -> str:
    """Which classifiers have an intercept: it matters where the two categories are not equally frequent."""
    kinds = {"free": "an intercept", "penalised": "an intercept that is penalised like a weight"}
    said = []
    for kind, what in {**kinds, "none": "no intercept"}.items():
        some = [method["label"] for method in methods if method["intercept"] == kind]
        if some:
            said.append(f"{' and '.join(some)} {'has' if len(some) == 1 else 'have'} {what}")
    return f" Intercepts: {'; '.join(said)}."


def _measures(results: Results) -> str:
    """What the columns of the table mean."""
    return (
        f"{selected_words(results.labels)} ".lstrip()
        + "Sparsity is the share of selected voxels among all, averaged over folds. "
        "Consistency is the mean Jaccard index between the voxels selected in every two "
        "folds (Ziniel et al., 2015), given with the value expected from random "
        "selections of the same sizes; we also report the stability of Nogueira et al. (2018) with its 95 % "
        "interval and Kuncheva's (2007) index. Maps are refits on all "
        f"{held_out_word(results.summary)}s; activation patterns follow Haufe et al. (2014)."
    )


_PHIPSON = (
    "Phipson B, Smyth GK (2010). Permutation p-values should never be zero. Statistical Applications in "
    "Genetics and Molecular Biology 9, 39. doi:10.2202/1544-6115.1585"
)
_TUSHER = (
    "Tusher VG, Tibshirani R, Chu G (2001). Significance analysis of microarrays applied to the ionizing "
    "radiation response. PNAS 98, 5116–5121. doi:10.1073/pnas.091062498"
)

WESTFALL_YOUNG = (
    "Westfall PH, Young SS (1993). Resampling-based multiple testing: examples and methods for p-value "
    "adjustment. Wiley, New York."
)


def inference_text(results: Results) -> list[str]:
    """A paragraph on what was asked for beyond the table, if anything was."""
    asked = results.inference
    said = [*_tests(results), *_information(results)]
    if asked.get("max_inclusion"):
        said.append(
            "Inclusion probabilities, averaged over folds, were tested voxel by voxel against the largest "
            "one of each permutation, which controls the family-wise error."
        )
    if asked.get("fdr"):
        said.append(
            f"Voxels were selected at a false-discovery rate of {asked['fdr']:g}: ranked by posterior "
            "inclusion probability times squared correlation with the labels, the largest set was taken for "
            "which permuted labels gave few enough voxels of that strength (Tusher et al., 2001), "
            "provided that permuted labels gave as good a set no more often than that rate; it was checked "
            "with effects planted in the volumes."
        )
    if asked.get("learning_curve"):
        said.append(
            "Accuracy was measured for several numbers of training runs, drawn at random, and compared with "
            "the prediction of state evolution for independent voxels."
        )
    return [" ".join(said)] if said else []


def _tests(results: Results) -> list[str]:
    """The test of accuracies, and the smallest p-value that the labels allow."""
    if not results.inference.get("permutations"):
        return []
    floor = floor_words(results)
    return [
        f"Above-chance decoding was tested with {all_compared(results)}: labels were exchanged "
        f"{results.exchanged} and the whole cross-validation, "
        "including tuning, was repeated; p = (1 + k) / (1 + n) with k of the n at least as accurate as "
        "observed (Phipson & Smyth, 2010; equal accuracies were ordered by the area under the ROC curve of "
        f"held-out decisions), {f'{floor}, ' if floor else ''}Holm-corrected for the comparisons."
    ]


def _information(results: Results) -> list[str]:
    """The test behind the information map: no classifier takes part in it."""
    rows = _information_rows(results)
    if not rows:
        return []
    level, counts = results.summary.information["level"], sorted({int(row["permutations"]) for row in rows})
    labels = compared_with((n, n < results.inference["permutations"]) for n in counts)
    return [
        "Which voxels carry information about the labels was tested without a classifier: the correlation "
        f"of each voxel with the labels, both centred within {held_out_word(results.summary)}s, was compared "
        f"with that of {labels}, exchanged in the same way, by step-down maxima over voxels "
        f"(Westfall & Young, 1993), which controls the family-wise error; voxels with a family-wise p of at "
        f"most {level:g} are reported (information map)."
    ]


def _information_rows(results: Results) -> list[dict[str, Any]]:
    known = results.subjects if results.summary.information else ()
    return [row for subject in known for row in results.table(subject, "information")]


def inference_references(results: Results) -> list[str]:
    """The works that the sentences name."""
    asked, regions = results.inference, results.summary.regions.get("permutations")
    tests = [_PHIPSON] if asked.get("permutations") else []
    rates = [_TUSHER] if asked.get("fdr") else []
    maxima = [WESTFALL_YOUNG] if regions or _information_rows(results) else []
    return [*tests, *rates, *maxima]


def regions_text(results: Results) -> list[str]:
    """Sentences for the methods text; none without an atlas."""
    found = results.summary.regions
    if not found:
        return []
    said = (
        f"Voxels were assigned to {found['n_regions']} regions of the atlas {found['atlas']} (the nearest "
        "voxel of the atlas), and inclusion probabilities, absolute weights and selected voxels were summed "
        "over regions."
    )
    if found["by_region"]:
        said += (
            f" Each region of {found['fewest_voxels']} voxels or more was also decoded by itself, in the "
            "same folds."
        )
    if found["without_region"]:
        said += " All voxels without each of these regions were decoded as well."
    if found["permutations"]:
        counts = found["compared_with"]
        used = compared_with((n, every) for n, every in counts)
        said += (
            f" Its accuracy was compared with {used}, the "
            "same for all regions, and p-values were corrected for all regions by step-down maxima "
            "(Westfall & Young, 1993)."
        )
    return [said]


HASTIE = (
    "Hastie T, Tibshirani R (1998). Classification by pairwise coupling. Annals of Statistics 26, 451–471. "
    "doi:10.1214/aos/1028144844"
)


def design_paragraphs(results: Results) -> list[str]:
    """A paragraph on what goes beyond pairs of single conditions, if anything does."""
    said = [*_groups(results), *_classes(results), *_crosses(results)]
    return [" ".join(said)] if said else []


def _groups(results: Results) -> list[str]:
    named = [
        f"{side} ({', '.join(members)})"
        for task in results.tasks
        for side, members in task.get("members", {}).items()
        if members != [side]
    ]
    return [f"Grouped conditions: {'; '.join(dict.fromkeys(named))}."] if named else []


def _classes(results: Results) -> list[str]:
    if not results.classes or results.summary.settings:  # a decoder's page says so elsewhere
        return []
    names = results.classes["names"]
    out = [
        f"All {len(names)} classes ({', '.join(names)}) were decoded together: probabilities of all pairs "
        "were combined into class probabilities (Hastie & Tibshirani, 1998); for methods without "
        "probabilities, "
        "pairs voted."
    ]
    if test := results.classes.get("permutation"):
        out.append(
            f"Its accuracy was compared with that of {compared_with([compared_classes(test)])} within runs."
        )
    return out


def _crosses(results: Results) -> list[str]:
    if not results.cross:
        return []
    labels = "; ".join(each["label"] for each in results.cross["crosses"])
    out = [
        f"Cross-decoding (trained → tested): {labels}. A tested run was never part of the training data "
        "of either comparison."
    ]
    if any(row["p_value"] != "n/a" for row in results.cross_rows()):
        out.append(
            "Its accuracy was compared with that after permutations of the training labels within runs, the "
            "test labels being kept."
        )
    return out
