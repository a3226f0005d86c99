"""
Would more runs help?
=====================

Accuracy against the number of training runs, compared with what state evolution predicts: once on a phantom,
whose voxels are correlated, and once on independent features, as the theory assumes.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from mvpa_gamp.decoding import learning_curve, make_tasks
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.methods import METHODS

method = METHODS["gamp-bg-lr"]
samples = phantom_samples(Phantom(shape=(14, 18, 12), n_runs=10), cache=False)
(task,) = make_tasks(samples.conditions, [("cat", "chair")])
X, runs = samples.X[task.rows], samples.runs[task.rows]
phantom = learning_curve(method, X, task.y, runs, n_splits=8)

rng = np.random.default_rng(1)
weights = rng.standard_normal(400) * (rng.random(400) < 0.05)
features = rng.standard_normal((480, 400))
score = features @ weights / np.linalg.norm(weights)
labels = np.where(3 * score + rng.logistic(size=480) > 0, 1, -1)
twelve = np.repeat(np.arange(12), 40)
independent = learning_curve(method, features, labels, twelve, n_splits=8)

# %%
# The curves.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
curves = {"SIMULATED PHANTOM": phantom, "independent features": independent}
for ax, (title, curve) in zip(axes, curves.items(), strict=True):
    size = curve.n_train_runs
    ax.errorbar(size, curve.accuracy, curve.standard_error, marker="o", label="measured")
    ax.plot(size, curve.predicted, "s--", color="0.5", label="state evolution")
    if not curve.refusal:
        farther = [curve.extrapolate(times * curve.n_runs) for times in (1, 2, 3)]
        to, accuracy, low, high = zip(*farther, strict=True)
        ax.fill_between(to, low, high, alpha=0.2)
        ax.plot(to, accuracy, "C0:", label="extrapolated")
    ax.set(title=title, xlabel="training runs", ylim=(0.4, 1.02))
    ax.legend(frameon=False, loc="lower right")
axes[0].set_ylabel("accuracy")

# %%
# If theory and measurement disagree, or features are correlated, nothing is extrapolated, and a message
# gives the reason.

for name, curve in curves.items():
    print(textwrap.fill(f"{name}: {curve.refusal or 'extrapolated.'}", 76))
