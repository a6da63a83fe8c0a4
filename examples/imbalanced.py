# %% [markdown]
# # Imbalanced data: one example in fifty
#
# The class that matters is rare. Labels at random are mostly wasted on the common class. This tutorial counts, for
# several strategies, how many of the rare examples are found with 150 labels, and how good the model is at finding
# them (its F1 score).

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import badge

rng = np.random.default_rng(0)


def examples(count):
    rare = rng.random(count) < 0.02
    x = rng.normal(size=(count, 10))
    x[rare] += 1.3 * np.eye(10)[rng.integers(3, size=rare.sum())] + 0.7  # three kinds of the rare class
    return x.astype(np.float32), rare.astype(int)


pool, truth = examples(4000)
test, test_truth = examples(4000)
print(f"{truth.sum()} of {len(truth)} examples are rare")


# %% [markdown]
# `class_weight="balanced"` makes the model take the rare class seriously; the strategy decides what it gets to see.


# %%
def run(strategy, seed):
    model = LogisticRegression(class_weight="balanced")
    known = np.random.default_rng(seed).choice(np.flatnonzero(truth), 2, replace=False)  # two that you have seen before
    initial = {int(id): 1 for id in known}
    learner = badge.ActiveLearner(pool, model, classes=2, strategy=strategy, seed=seed, initial=initial)
    scores = []
    for _ in range(10):
        ids = learner.ask(15)
        learner.tell(ids, truth[ids])
        scores.append(f1_score(test_truth, learner.model.predict(test)))
    return scores, sum(learner.labels.values()) - len(known)


found = {name: [run(name, seed) for seed in range(3)] for name in ("badge", "marg", "power-norm", "rand")}
for name, runs in found.items():
    score = np.mean([scores[-1] for scores, _ in runs])
    print(f"{name:10} rare examples among 150 labels: {[int(count) for _, count in runs]}, F1 {score:.2f}")

# %% [markdown]
# Two rare examples that were known before go in as `initial`; without any, all labels would be of one class for a
# while, and nothing could be learnt from them. No rare example at hand? Begin with a [cold start](cold_start.md) on
# embeddings.
#
# Left: how good the model is at finding the rare class. Right: how many rare examples the labels were spent on.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for name, runs in found.items():
    left.plot(range(15, 165, 15), np.mean([scores for scores, _ in runs], axis=0), marker="o", label=name)
left.set(xlabel="number of labels", ylabel="F1 of the rare class", title="means of three seeds", ylim=(0.2, 0.65))
left.legend(loc="upper left", ncol=2)
right.bar(list(found), [np.mean([count for _, count in runs]) for runs in found.values()], color="tab:blue")
right.set_title("rare examples found with 150 labels")
plt.show()
