"""Sentences of the methods text on inference: permutations, maps of voxels, learning curves."""

from typing import Any

from mvpa_gamp.report.data_words import held_out_word
from mvpa_gamp.report.inference import all_compared, floor_words
from mvpa_gamp.report.words import compared_with
from mvpa_gamp.results.reader import Results

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
        f"{results.exchanged} within {held_out_word(results.summary)}s and the whole cross-validation, "
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
    if found["permutations"]:
        counts = found["compared_with"]
        used = compared_with((n, every) for n, every in counts)
        said += (
            f" Its accuracy was compared with {used}, the "
            "same for all regions, and p-values were corrected for all regions by step-down maxima "
            "(Westfall & Young, 1993)."
        )
    return [said]
