"""
Ten minutes on the phantom
==========================

From the command to the page, then the same in Python. You need only this package: the data are a
*phantom*, a simulated subject in the form of the experiment of Haxby et al. (2001), in which people looked
at faces, houses, cats and other things. Everything made from it is marked as simulated.
"""

# %%
# The command
# -----------
# In a shell this is::
#
#     python -m mvpa_gamp decode --phantom --phantom-shape 20 24 16 \
#         --pairs face:house cat:chair --methods vamp-sbg l1-lr-cv --out phantom-results
#
# Here it is called from Python, in a temporary folder. ``--phantom-shape`` makes the phantom small; without
# it, the phantom has Haxby's 40 x 64 x 64 voxels, and the command takes about a minute instead of seconds.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels

folder = Path(tempfile.mkdtemp()) / "phantom-results"
options = "--phantom --phantom-shape 20 24 16 --pairs face:house cat:chair"
methods = "--methods vamp-sbg l1-lr-cv"
exit_code = main([*options.split(), *methods.split(), "--out", str(folder)])

# %%
# Read the table from left to right. *Accuracy* is measured on runs that were left out, one at a time.
# *Voxels* is the mean number of voxels selected in a fold. *Consistency* is the mean overlap
# of the voxels selected in two folds (:doc:`what the number means </consistency>`).
#
# What was written
# ----------------
# One folder with a page, ``phantom-results/index.html``: open it in a browser; it is a single
# file and needs no network. It starts with the answers; viewer, methods text and files are one click away.

for path in sorted(folder.iterdir()):
    print(path.name + "/" * path.is_dir())

# %%
# The participant's folder has the maps as NIfTI files with the grid of the mask, for any viewer. ``pip`` is
# the probability that a voxel's weight is not zero, ``Selected`` what the method chose (:doc:`what each map
# means </maps>`).

for path in sorted(folder.glob("sub-phantom/*face*gampSbgLr_*")):
    print(path.name)

# %%
# One of the figures of the page:

picture = plt.imread(next(folder.glob("figures/*faceMinusHouse_maps.png")))
height, width, _ = picture.shape
figure, axes = plt.subplots(figsize=(12, 12 * height / width), layout="tight", dpi=150)
axes.imshow(picture)
axes.axis("off")

# %%
# The same in Python
# ------------------
# ``GAMPDecoder`` takes images and labels and returns images. Here the volumes are simulated; with
# your own data, give file names (:doc:`/own_data`).

phantom = Phantom(shape=(20, 24, 16), categories=("face", "house"))
bold, mask, _, truth = phantom_images(phantom)
labels = phantom_labels(phantom)  # a condition and a run for every volume

decoder = GAMPDecoder(mask=mask, ignore="rest")
decoder.fit(bold, labels.conditions, groups=labels.runs)  # leave one run out
print(f"accuracy {decoder.fold_scores_.mean():.2f}, mean over {phantom.n_runs} held-out runs")
print(decoder.confusion_)

# %%
# How did the fits end, and how many voxels did they select? There is no grid of penalties, and nothing to
# tune.

shown = decoder.status_[["fold", "n_iter", "voxels", "converged"]]
print(shown.tail(3).to_string(index=False))
print(decoder.status_.status.iloc[-1])

# %%
# Are they the planted voxels?
# ----------------------------
# Only a phantom can answer this. Sort the voxels by inclusion probability and count how many of the first
# ones were planted.

inclusion = decoder.inclusion_img_.vector("face-house")
planted = truth.for_pair("face", "house")
order = np.argsort(-inclusion)
for k in (5, 10, 20):
    print(f"of the first {k} voxels, {planted[order[:k]].sum()} are planted")
print(f"by chance {planted.mean():.0%} would be")

# %%
# Where to go from here
# ---------------------
# * :doc:`/own_data`: your own files, and the format of the label file.
# * :doc:`/inference`: is it more than chance, and which voxels can be reported?
# * :doc:`/maps`: what each map means, and what it does not.
