"""
Is it more than chance, and which voxels?
=========================================

A permutation test of the accuracy, voxels corrected for all voxels, voxels at a false-discovery rate, and a
check of that rate with planted effects. :doc:`/inference` explains each.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from mvpa_gamp.decoding import (
    calibrate,
    carries_information,
    cross_validate,
    make_tasks,
    permutation_test,
    planted_check,
)
from mvpa_gamp.decoding.discoveries import Planting
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.style import colour_of

samples = phantom_samples(Phantom(shape=(14, 18, 12), n_runs=10), cache=False)
(task,) = make_tasks(samples.conditions, [("cat", "chair")])
X, y, runs = samples.X[task.rows], task.y, samples.runs[task.rows]
method = METHODS["gamp-bg-lr"]

# %%
# Accuracy
# --------
# Labels are exchanged in blocks within runs, and the whole cross-validation is repeated 200 times.

test = permutation_test(method, X, y, runs, n=200, max_inclusion=True)
print(f"accuracy {test.score:.2f}, p = {test.pvalue:.3f}, {test.n_distinct} labellings")

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist(test.null, bins=np.arange(0.2, 1.02, 0.04), color="0.7", edgecolor="white")
ax.axvline(test.score, color=colour_of(method.name), label=f"observed, p = {test.pvalue:.3f}")
ax.set(xlabel="accuracy", ylabel="permutations")
ax.set_title("SIMULATED PHANTOM: cat against chair")
ax.legend(frameon=False, loc="upper left")

# %%
# Voxels
# ------
# Voxels that the decoder needs, from strict to lenient: family-wise by the largest inclusion probability of
# each permutation; at a false-discovery rate of 5 %, calibrated with permuted labels; and the paper's rule,
# an inclusion probability above one half. Next to them, voxels that carry information, each tested alone.

done = cross_validate(method, X, y, runs)
calibration = calibrate(method, X, y, runs)
inclusion = done.refit.inclusion[:, 0]
selections = {
    "family-wise p < 0.05": test.family_wise(done.folds.inclusion.mean(axis=1)) < 0.05,
    "carries information": carries_information(X, y, runs).selected(0.05),
    "false-discovery rate 5 %": calibration.select(0.05).selected,
    "inclusion above 1/2": inclusion > 0.5,
}
planted = samples.truth.for_pair("cat", "chair")
for name, selected in selections.items():
    right = planted[selected].sum()
    print(f"{name:25s} {selected.sum():3d} voxels, {right} of them planted")

# %%
# Does the rate hold in these data?
# ---------------------------------
# Effects of known size are planted at random voxels, with labels permuted to remove the real effect.

check = planted_check(
    method,
    X,
    y,
    runs,
    fdr=0.05,
    calibration=calibration,
    of="voxel",
    planting=Planting(n_planted=5, n_repeats=6),
)
print("effect (sd)  false  found")
for effect in check.effects:
    print(f"{effect.size:11.2f}  {effect.false_rate:5.0%}  {effect.power:5.0%}")
print(textwrap.fill(check.verdict, 76))
