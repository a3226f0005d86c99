"""
Five maps of one comparison
===========================

Weight, posterior deviation, inclusion probability, selection frequency and activation pattern of one fit,
next to the effect that was planted. :doc:`/maps` says what each of them means.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.metrics import average_precision_score

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.brainmaps import to_image
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels
from mvpa_gamp.report.style import SHARES, WEIGHTS

phantom = Phantom(shape=(20, 24, 16), categories=("face", "house"))
bold, mask, _, truth = phantom_images(phantom)
labels = phantom_labels(phantom)
decoder = GAMPDecoder(mask=mask, ignore="rest")
decoder.fit(bold, labels.conditions, groups=labels.runs)
print(f"accuracy {decoder.fold_scores_.mean():.2f}")

# %%
# The slice with the largest planted difference, all maps on one grid.

contrast = "face-house"
planted = truth.response("face") - truth.response("house")
images = {
    "planted effect": to_image(planted, mask),
    "weight": decoder.coef_img_[contrast],
    "activation pattern": decoder.pattern_img_[contrast],
    "posterior deviation": decoder.coef_std_img_[contrast],
    "inclusion probability": decoder.inclusion_img_[contrast],
    "selection frequency": decoder.selection_freq_img_[contrast],
}
inside = np.asarray(mask.dataobj) > 0
box = tuple(slice(at.min(), at.max() + 1) for at in inside.any(axis=2).nonzero())
height = np.abs(np.asarray(images["planted effect"].dataobj)).sum(axis=(0, 1)).argmax()

figure, axes = plt.subplots(2, 3, figsize=(9, 5.6), layout="constrained")
for ax, (name, image) in zip(axes.flat, images.items(), strict=True):
    values = np.where(inside, np.asarray(image.dataobj), np.nan)[:, :, height][box].T
    signed = np.nanmin(values) < 0
    largest = np.nanmax(np.abs(values)) if signed or "dev" in name else 1.0
    shown = ax.imshow(
        values,
        origin="lower",
        cmap=WEIGHTS if signed else SHARES,
        vmin=-largest if signed else 0,
        vmax=largest,
    )
    ax.set_title(name)
    ax.axis("off")
    figure.colorbar(shown, ax=ax, shrink=0.8, ticks=MaxNLocator(5))
figure.suptitle("SIMULATED PHANTOM: face (red) against house (blue), one slice")

# %%
# The pattern shows where the two conditions differ, with noise everywhere. Few weights are large: the
# classifier needs only some of several redundant voxels. The deviation is largest where the model is
# uncertain whether a voxel is needed.
#
# How the maps rank the voxels, compared with the planted effect (area under the precision-recall
# curve; its chance level is the share of planted voxels):

different = truth.for_pair("face", "house")
vectors = {
    "weight": np.abs(decoder.coef_img_.vector(contrast)),
    "inclusion probability": decoder.inclusion_img_.vector(contrast),
    "selection frequency": decoder.selection_freq_img_.vector(contrast),
    "activation pattern": np.abs(decoder.pattern_img_.vector(contrast)),
}
for name, vector in vectors.items():
    print(f"{name:22s} {average_precision_score(different, vector):.2f}")
print(f"{'by chance':22s} {different.mean():.2f}")
