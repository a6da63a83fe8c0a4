# %% [markdown]
# # A team that labels
#
# Three people label one pool over several weeks. Two of them label each example, and one person is careless. The
# learner keeps every label in a journal and trains on the majority. It measures how far people agree, and whether
# more labels are worth their cost. To do the same in a browser, run `badge label reviews.csv --per-item 2 --people
# ann,ben,cat`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import badge

iris = load_iris()
names = list(iris.target_names)
rng = np.random.default_rng(0)
x = np.repeat(iris.data, 4, axis=0) + rng.normal(scale=0.15, size=(600, 4))
truth = np.array(names)[np.repeat(iris.target, 4)]
CARE = {"ann": 0.97, "ben": 0.95, "cat": 0.75}  # how often each is right


def says(person, id):
    return truth[id] if rng.random() < CARE[person] else str(rng.choice(names))


def opened():
    model = LogisticRegression(max_iter=1000)
    return badge.ActiveLearner(x, model, classes=names, strategy="badge", seed=0, journal="flowers.jsonl")


# %% [markdown]
# In each week, ask for examples with two people each, tell the label of each person, and decide where they disagree.


# %%
def week(learner, count):
    ids = learner.ask(count, people=2)
    for number, id in enumerate(ids):
        for person in np.roll(list(CARE), number)[:2]:
            learner.tell([id], [says(person, id)], by=str(person))
    ties = learner.agreement().ties
    for id in ties:  # someone decides where two disagree
        learner.relabel(id, truth[id])


learner = opened()
week(learner, 30)
learner.close()  # the machine goes down …

learner = opened()  # … and the next week goes on from the journal
for _ in range(5):
    week(learner, 12)
print(learner)
print(learner.agreement())
print(learner.advice())

# %% [markdown]
# Left: how far each pair of people agrees (Cohen's κ is 1 for full agreement and 0 for chance). Right: how often the
# models predicted the label of an example that they picked. Cat needs to take more care.

# %%
kappa = learner.agreement().kappa
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
left.bar([" and ".join(pair) for pair in kappa], list(kappa.values()), color="tab:blue")
left.set(ylabel="Cohen's κ", ylim=(0, 1), title="how far each two people agree")
right.plot([row.prequential for row in learner.history if row.prequential is not None])
right.set(
    xlabel="answers",
    ylabel="share that the models had right",
    ylim=(0, 1.02),
    title="models' guesses at what they asked for",
)
plt.show()
learner.close()
