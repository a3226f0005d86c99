"""
Between people: maps of many participants
=========================================

One map of each of two conditions and participant, as a first-level model gives them. Can the maps of a *new*
person be told apart? Whole participants are held out. The maps here are generated: a pattern for the
condition in some voxels, and a much larger one for every person. :doc:`/between_people` has the commands.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import nibabel
import numpy as np

from mvpa_gamp.decoding import cross_validate, held_out_answers
from mvpa_gamp.decoding.group import people_scores
from mvpa_gamp.imaging.maps import MapsSource
from mvpa_gamp.methods import METHODS

rng = np.random.default_rng(0)
folder, shape, n_people = Path(tempfile.mkdtemp()), (12, 14, 10), 20
pattern = np.zeros(shape)
pattern[3:6, 4:8, 3:6] = 0.5
lines = ["file\tcondition\tparticipant"]
for number in range(n_people):
    person = 3 * rng.standard_normal(shape)  # what is theirs in both maps
    for name, sign in (("heat", 1), ("warmth", -1)):
        values = person + sign * pattern + rng.standard_normal(shape)
        path = folder / f"sub-{number + 1:02d}_{name}.nii"
        nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.diag([3.0, 3, 3, 1])), path)
        lines.append(f"{path.name}\t{name}\tsub-{number + 1:02d}")
table = folder / "maps.tsv"
_ = table.write_text("\n".join(lines) + "\n")

# %%
# As they are, and centred within people
# --------------------------------------
# ``--scaling centre``, the default here, takes away the mean of a participant's compared maps: what is theirs
# in both maps goes. Nothing of another person is used, and no label.

decisions = {}
for scaling in ("none", "centre"):
    samples = MapsSource(maps=(str(table),), scaling=scaling).load()
    y = np.where(samples.conditions == "heat", 1.0, -1.0)
    for name in ("vamp-bg", "gamp-bg-lr", "svm"):
        said = held_out_answers([cross_validate(METHODS[name], samples.X, y, samples.runs)])
        decision, people = said.decision[:, 0], samples.people[said.rows]
        decisions[scaling, name] = decision, y[said.rows], people
        found = people_scores(decision, y[said.rows], people)
        right = np.mean((decision > 0) == (y[said.rows] > 0))
        print(
            f"{scaling:6} {name:10} {100 * right:5.1f} % correct, forced choice {100 * found.choice:5.1f} % "
            f"({100 * found.low:.0f} to {100 * found.high:.0f}), AUC {found.auc:.2f}"
        )

# %%
# Each line is a participant: the decision for the map of warmth (left) and of heat (right). A line that rises
# is a right forced choice; points on the wrong side of the dashed line are errors of single maps.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), constrained_layout=True)
for ax, scaling in zip(axes, ("none", "centre"), strict=True):
    decision, true, people = decisions[scaling, "svm"]
    for one in np.unique(people):
        pair = [decision[(people == one) & (true == sign)][0] for sign in (-1, 1)]
        ax.plot(("warmth", "heat"), pair, "o-", color="0.3", markersize=3, linewidth=0.8)
    ax.axhline(0, color="black", linestyle="--", linewidth=0.8)
    ax.set_title({"none": "maps as they are", "centre": "centred within people"}[scaling])
axes[0].set_ylabel("decision of the SVM")
plt.show()
