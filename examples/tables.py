# %% [markdown]
# # Tables: trees and columns of every kind
#
# You have a table with numbers and categories, and a model of trees. Trees have no embeddings. badge picks from their
# probabilities, and uses the preprocessed columns as embeddings. The table in this tutorial is scikit-learn's breast
# cancer data, with one made-up category.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import badge

data = load_breast_cancer(as_frame=True)
table = data.data.copy()
table["clinic"] = np.array(["north", "south", "west"])[np.arange(len(table)) % 3]
truth = data.target.to_numpy()
order = np.random.default_rng(0).permutation(len(table))
pool, test = table.iloc[order[:420]], table.iloc[order[420:]]
y_pool, y_test = truth[order[:420]], truth[order[420:]]


# %%
def forest(ids):
    columns = make_column_transformer((OneHotEncoder(), ["clinic"]), remainder=StandardScaler())
    model = make_pipeline(columns, RandomForestClassifier(20, random_state=0))
    return model.fit(pool.iloc[ids], y_pool[ids])


out = badge.predict(forest(np.arange(20)), pool)
print(out)

# %% [markdown]
# Run five rounds of 10 labels with three strategies. The table needs no conversion.


# %%
def curve(strategy, seed):
    ids, found = np.random.default_rng(seed).permutation(len(pool))[:10], []
    for number in range(5):
        model = forest(ids)
        found.append(model.score(test, y_test))
        picks = badge.select(model, pool, k=10, strategy=strategy, seed=number, exclude=ids)
        ids = np.concatenate([ids, picks])
    return found


found = {name: np.mean([curve(name, seed) for seed in range(2)], axis=0) for name in ("badge", "marg", "rand")}
for name, means in found.items():
    print(f"{name:6}", means.round(3))

# %% [markdown]
# The plot shows test accuracy against the number of labels, for two strategies and for labels at random. Two seeds
# are an example, not a measurement. [The results](../results.md) have many seeds and data sets.

# %%
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for name, means in found.items():
    axes.plot(range(10, 60, 10), means, marker="o", label=name)
axes.set(xlabel="number of labels", ylabel="test accuracy", title="means of two seeds")
axes.legend()
plt.show()
