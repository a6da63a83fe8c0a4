# %% [markdown]
# # Cold start: the first labels
#
# Before the first label, there is no model that could be unsure of anything. But often there are embeddings of a
# pretrained model. A cold start uses them to pick examples that are typical and different from each other. In this
# tutorial, the embeddings are the first principal components of the digits.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

import badge

digits = load_digits()
embeddings = PCA(20, random_state=0).fit_transform(digits.data).astype(np.float32)
truth = digits.target
out = badge.Outputs(embeddings=embeddings)

# %% [markdown]
# Ten labels for ten classes: how many classes does each strategy find, and how accurate is a model with only these
# labels?

# %%
NAMES = ("typiclust", "maxherding", "kmeanspp", "rand")
found = {}
for name in NAMES:
    runs = []
    for seed in range(5):
        ids = badge.select_from(out, k=10, strategy=name, seed=seed)
        model = LogisticRegression(max_iter=1000).fit(embeddings[ids], truth[ids])
        runs.append((len(set(truth[ids])), model.score(embeddings, truth)))
    found[name] = np.array(runs)
    print(f"{name:10} classes among 10 labels {found[name][:, 0].mean():4.1f}, accuracy {found[name][:, 1].mean():.2f}")

# %% [markdown]
# A learner takes the same names. With `first="typiclust"`, typiclust picks until there is a model. Then the strategy
# takes over.

# %%
learner = badge.ActiveLearner(
    embeddings, LogisticRegression(max_iter=1000), classes=10, seed=0, first="typiclust", embeddings=embeddings
)
for k in (10, 10, 10):
    ids = learner.ask(k)
    learner.tell(ids, truth[ids])
print(f"accuracy with 30 labels: {learner.score(embeddings, truth):.2f}")

# %% [markdown]
# Left: the accuracy of a model with the first ten labels. Right: the ten images that `typiclust` picks.

# %%
first = badge.select_from(out, k=10, strategy="typiclust", seed=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained", width_ratios=[1, 1.2])
left.bar(NAMES, [found[name][:, 1].mean() for name in NAMES], color="tab:blue")
left.set(ylabel="accuracy with ten labels", title="means of five seeds")
left.tick_params(axis="x", rotation=20)
tiles = np.pad(digits.images[first], ((0, 0), (1, 1), (1, 1))).reshape(2, 5, 10, 10)
right.imshow(tiles.transpose(0, 2, 1, 3).reshape(20, 50), cmap="gray_r")
right.set_title("typiclust: the first ten to label")
right.axis("off")
plt.show()
