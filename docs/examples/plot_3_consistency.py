"""
Do all folds select the same voxels?
====================================

Three methods on the same comparison, and the overlap of their selections between folds. :doc:`/consistency`
says how to read it.
"""

import matplotlib.pyplot as plt

from mvpa_gamp.decoding import cross_validate, fold_errors, make_tasks
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.style import OVERLAP
from mvpa_gamp.results.cells import consistency
from mvpa_gamp.stability import jaccard_matrix

phantom = Phantom(shape=(20, 24, 16), categories=("cat", "chair"))
samples = phantom_samples(phantom, cache=False)
(task,) = make_tasks(samples.conditions, [("cat", "chair")])
X, y, runs = samples.X[task.rows], task.y, samples.runs[task.rows]

names = ("gamp-bg-lr", "l1-lr-cv", "onebit-cs")
done = {name: cross_validate(METHODS[name], X, y, runs) for name in names}

# %%
# One line per method. Consistency is the mean overlap (Jaccard index) between two folds; ``chance`` is its
# expected value for random selections of the same sizes.

print(f"{'method':12s} {'error':>6s} {'voxels':>7s} {'consistency':>12s} {'chance':>8s}")
for name, result in done.items():
    found = consistency(result.folds.support)
    alike, chance = found["consistency_percent"], found["chance_consistency_percent"]
    error, voxels = fold_errors(result, y).mean(), found["voxels"]
    print(f"{name:12s} {error:6.1%} {voxels:7.1f} {alike:10.0f} % {chance:6.1f} %")

# %%
# Every pair of folds. A dark row is a fold that agrees with the others; a pale row is a fold to check.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (name, result) in zip(axes, done.items(), strict=True):
    shown = ax.imshow(jaccard_matrix(result.folds.support), vmin=0, vmax=1, cmap=OVERLAP)
    ax.set(title=METHODS[name].label, xlabel="held-out run")
axes[0].set_ylabel("held-out run")
figure.colorbar(shown, ax=axes, label="Jaccard index", shrink=0.8)
figure.suptitle("SIMULATED PHANTOM: overlap of the selections, cat against chair")
