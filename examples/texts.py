# %% [markdown]
# # Texts: a scikit-learn pipeline
#
# You have texts, and a pipeline of TF-IDF and logistic regression. Pass it to `badge.ActiveLearner`, unchanged. The
# learner trains it, asks for labels of texts, takes them in any order, and keeps everything in a journal. In this
# tutorial, the texts are made-up complaints to a shop.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import badge

TOPICS = {
    "delivery": "parcel courier late lost address tracking doorstep week waiting package".split(),
    "refund": "money back refund charged twice invoice bank paid card amount".split(),
    "broken": "broken scratch crack stopped working noise screen battery button dead".split(),
    "praise": "great love perfect thanks happy friendly fast quality best again".split(),
}
FILLER = "the my is and was a to it of this with for have i very so but still order shop".split()


def complaints(count, rng):
    topics = rng.choice(list(TOPICS), size=count, p=[0.45, 0.3, 0.2, 0.05])
    texts = [" ".join([*rng.choice(FILLER, 6), *rng.choice(TOPICS[topic], 2)]) for topic in topics]
    return texts, topics


rng = np.random.default_rng(0)
texts, truth = complaints(1500, rng)
test_texts, test_truth = complaints(400, rng)
print(texts[0], "->", truth[0])

# %% [markdown]
# Ask, label, tell. Each run has a journal, such as `complaints-badge-0.jsonl`. If the process stops here, the next
# start resumes from it, and nothing is lost.


# %%
def curve(strategy, seed):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    learner = badge.ActiveLearner(
        texts, model, classes=list(TOPICS), strategy=strategy, seed=seed, journal=f"complaints-{strategy}-{seed}.jsonl"
    )
    scores = []
    with learner:
        for _ in range(8):
            ids = learner.ask(10)
            learner.tell(ids, truth[ids])  # a person does this
            scores.append(learner.score(test_texts, test_truth))
        last = [texts[i] for i in learner.batches[-1][:3]]
    return scores, last


found = {name: [curve(name, seed) for seed in range(3)] for name in ("badge", "rand")}
print(*found["badge"][0][1], sep="\n")

# %% [markdown]
# The plot shows test accuracy against the number of labels, for badge and for labels at random. Each curve is the
# mean of three seeds.

# %%
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for name, runs in found.items():
    axes.plot(range(10, 90, 10), np.mean([scores for scores, _ in runs], axis=0), marker="o", label=name)
axes.set(xlabel="number of labels", ylabel="test accuracy", title="complaints, 4 topics")
axes.legend()
plt.show()
