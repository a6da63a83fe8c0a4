# %% [markdown]
# # Arrays of your own: any model, any language
#
# Your model runs somewhere else: in JAX, in C++, behind a service. badge needs only two arrays: class probabilities
# `[N, C]`, and embeddings `[N, D]`, the input of the last layer. On the command line, the same is `badge select
# --probabilities p.npy --embeddings z.npy -k 12`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import badge

rng = np.random.default_rng(0)
centres = rng.normal(size=(4, 16)) * 0.7
centres[1] = centres[0] + rng.normal(size=16) * 0.2  # two classes that are hard to tell apart
y = rng.integers(4, size=2000)
embeddings = (centres[y] + rng.normal(size=(2000, 16))).astype(np.float32)
scores = embeddings @ centres.T - (centres**2).sum(axis=1) / 2  # what your model says

out = badge.Outputs.from_logits(scores, embeddings)
print(out)

# %% [markdown]
# You can try any number of strategies on the same outputs. `explain` gives the reasons for the picks: how unsure the
# model is of each (`norm`), how far each is from the earlier picks (`nearest`), and how many examples of the pool are
# nearest to it (`coverage`).

# %%
picks = {name: badge.select_from(out, k=12, strategy=name, seed=0) for name in ("badge", "marg", "rand")}
why = badge.explain(out, picks["badge"])
for row in why.rows()[:4]:
    print({key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()})
for name, ids in picks.items():
    elsewhere = (scores[ids].argmax(axis=1) > 1).sum()
    print(f"{name:6} mean norm {badge.explain(out, ids).mean_norm:.2f}, {elsewhere} picks outside the two hard classes")

# %% [markdown]
# The plots show the pool in the plane of its two largest directions. Two classes are hard to tell apart. Margin
# spends its picks on them. badge picks from them and from elsewhere.

# %%
centred = embeddings - embeddings.mean(axis=0)
plane = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
figure, panels = plt.subplots(1, 3, figsize=(7, 2.6), layout="constrained", sharex=True, sharey=True)
for axes, (name, ids) in zip(panels, picks.items(), strict=True):
    axes.scatter(*plane.T, c=scores.argmax(axis=1), s=4, alpha=0.35, cmap="tab10")
    axes.scatter(*plane[ids].T, facecolors="none", edgecolors="black", s=70, linewidths=1.6)
    axes.set(title=name, xticks=[], yticks=[])
plt.show()
