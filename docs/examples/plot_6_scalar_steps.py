"""
Likelihoods and priors, drawn
=============================

GAMP replaces one large problem by many of one dimension. What a likelihood and a prior do in one dimension
can be drawn. :doc:`/mathematics` has the symbols.
"""

import matplotlib.pyplot as plt
import numpy as np

from mvpa_gamp.gamp import Bernoulli, Gaussian, Hinge, Laplace, Logistic, Probit, Robust

likelihoods = {
    "logistic": Logistic(),
    "probit": Probit(2.9),
    "hinge": Hinge(),
    "robust logistic": Robust(Logistic(), flip=0.1),
}

# %%
# The loss of a label y = +1 against its score z, and the slope s that it exerts on a prediction p with
# variance 1. A robust likelihood ignores a label that is far off: its slope returns to zero.

z = np.linspace(-6, 6, 241)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, likelihood in likelihoods.items():
    axes[0].plot(z, likelihood.loss(1.0, z), label=name)
    axes[1].plot(z, likelihood.score(1.0, z, 1.0).s, label=name)
axes[0].set(xlabel="score z", title="loss of y = +1", ylim=(0, 6))
axes[1].set(xlabel="prediction p, tau_p = 1", title="slope s")
axes[0].legend(frameon=False)

# %%
# The effect of a prior on an observation r with variance 1: the posterior mean, and the probability that the
# weight is not zero. A Gaussian shrinks everything, a Laplace prior (max-sum) sets a threshold, a
# Bernoulli-Gaussian prior leaves large weights alone and small ones out.

r = np.linspace(-6, 6, 241)
spike = Bernoulli(0.1, Gaussian(var=9.0))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].plot(r, Gaussian(var=2.0).posterior(r, 1.0).mean, label="Gaussian")
axes[0].plot(r, Laplace(1.0).prox(r, 1.0).mean, label="Laplace, max-sum")
axes[0].plot(r, spike.posterior(r, 1.0).mean, label="Bernoulli-Gaussian")
axes[0].plot(r, r, color="0.8", zorder=0)
axes[0].set(xlabel="pseudo-data r, tau_r = 1", title="estimate of the weight")
axes[0].legend(frameon=False)
axes[1].plot(r, spike.inclusion(r, 1.0), "C2")
axes[1].set(xlabel="pseudo-data r, tau_r = 1", title="inclusion probability")
