# %% [markdown]
# # Imbalanced data: one example in fifty
#
# The class that matters is rare, and labels at random are mostly wasted on the common class. For several strategies,
# this tutorial counts the rare examples among 150 labels, and measures how well the model finds rare examples (its F1
# score).

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
# `class_weight="balanced"` gives the rare class more weight in the training. The strategy decides which examples get
# labels.


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
# Two rare examples that are known in advance are passed as `initial`. Without them, all labels would be of one class
# at first, and no model could be trained. If you know no rare example, begin with a [cold start](cold_start.md) on
# embeddings.
#
# Left: the F1 score of the rare class. Right: the number of rare examples among the labels.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for name, runs in found.items():
    left.plot(range(15, 165, 15), np.mean([scores for scores, _ in runs], axis=0), marker="o", label=name)
left.set(xlabel="number of labels", ylabel="F1 of the rare class", title="means of three seeds", ylim=(0.2, 0.65))
left.legend(loc="upper left", ncol=2)
right.bar(list(found), [np.mean([count for _, count in runs]) for runs in found.values()], color="tab:blue")
right.set_title("rare examples found with 150 labels")
plt.show()
