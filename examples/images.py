# %% [markdown]
# # Images: fewer labels for a small network
#
# You have images without labels, and a network in PyTorch. In each round you train the network on the labels so far,
# call `badge.select` to pick the next images, and label them. In this tutorial, the images are scikit-learn's
# handwritten digits, and the labels are known in advance.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import badge

torch.set_num_threads(1)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]  # [1797, 1, 8, 8]
labels = torch.tensor(digits.target)
pool, test = images[:1300], images[1300:]


# %% [markdown]
# You can use any network, unchanged. This one has one convolution.


# %%
def train(ids):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(pool[ids]), labels[ids]).backward()
        optimizer.step()
    return net


def accuracy(net):
    with torch.no_grad():
        return (net(test).argmax(1) == labels[1300:]).float().mean().item()


# %% [markdown]
# Run eight rounds of 20 labels, once with badge and once at random. `exclude` holds the positions that have labels
# already.


# %%
def rounds(strategy, seed=0):
    ids = np.random.default_rng(seed).permutation(len(pool))[:20]
    found = []
    for number in range(8):
        net = train(ids)
        found.append(accuracy(net))
        picks = badge.select(net, pool, k=20, strategy=strategy, seed=number, exclude=ids)
        ids = np.concatenate([ids, picks])
    return found, picks


curves = {strategy: rounds(strategy) for strategy in ("badge", "rand")}
for strategy, (found, _) in curves.items():
    print(strategy, [round(value, 2) for value in found])

# %% [markdown]
# The plots show the learning curves, and the last 20 images that badge picked. One seed is an example, not a
# measurement. [The results](../results.md) have many seeds and data sets.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for strategy, (found, _) in curves.items():
    left.plot(range(20, 180, 20), found, marker="o", label=strategy)
left.set(xlabel="number of labels", ylabel="test accuracy")
left.legend()
tiles = nn.functional.pad(pool[curves["badge"][1], 0], (1, 1, 1, 1)).reshape(4, 5, 10, 10)
right.imshow(tiles.permute(0, 2, 1, 3).reshape(40, 50), cmap="gray_r")
right.set_title("what badge asked for in the last round")
right.axis("off")
plt.show()
