"""What a study finds out, one analysis per file: its jobs, its files, its parts of summary.json."""

from mvpa_gamp.study.analyses.designs import AllTogether, Crosses
from mvpa_gamp.study.analyses.inference import Inference, Information, People
from mvpa_gamp.study.analyses.pairs import Pairs
from mvpa_gamp.study.analyses.regions import ByRegion
from mvpa_gamp.study.jobs import Analysis
from mvpa_gamp.study.plan import Study


def plan_analyses(study: Study) -> tuple[Pairs, tuple[Analysis, ...]]:
    """The comparisons, and everything in the order in which it is done: they come first."""
    classes = AllTogether.of(study)
    pairs = Pairs(study, classes.joint)
    inference, crosses = Inference.of(study), Crosses.of(study)
    people = People(study, inference)
    others = (inference, Information(study), people, ByRegion.of(study), classes, crosses)
    return pairs, (pairs, *others)
