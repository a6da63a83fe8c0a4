# %% [markdown]
# # A language model with a class head
#
# `AutoModelForSequenceClassification` turns a decoder such as Llama, Qwen or GPT-2 into a classifier. badge finds its
# head. The embedding is the hidden state of the token that the head reads. This tutorial builds a tiny model with
# random weights, so it needs no download. With your own checkpoint, the rest stays the same.

# %%
import logging

import matplotlib.pyplot as plt
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import badge

torch.set_num_threads(1)
logging.getLogger("transformers").setLevel(logging.ERROR)
REQUESTS = "please reset my password i cannot log in card was charged twice refund cancel order where is parcel"
WORDS = ["[PAD]", "[UNK]", *REQUESTS.split()]
backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")

# %% [markdown]
# For your own model, use `AutoTokenizer.from_pretrained(name)` and
# `AutoModelForSequenceClassification.from_pretrained(name, num_labels=3)`.

# %%
torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_labels=3, pad_token_id=0, max_position_embeddings=64,
)  # fmt: skip
model = transformers.LlamaForSequenceClassification(config)

rng = np.random.default_rng(0)
KINDS = {"account": WORDS[3:10], "payment": WORDS[10:15], "order": WORDS[15:]}
kinds = rng.choice(list(KINDS), 600, p=[0.6, 0.3, 0.1])
texts = [" ".join([*rng.choice(WORDS[2:], 2), *rng.choice(KINDS[kind], 4)]) for kind in kinds]
truth = np.array([list(KINDS).index(kind) for kind in kinds])
print(texts[0], "->", kinds[0])


# %% [markdown]
# Fine-tune on the labels so far, pick, label, and repeat. For a large model, `max_length` and
# `autocast=torch.bfloat16` save time.


# %%
def fine_tune(ids):
    torch.manual_seed(0)
    net = transformers.LlamaForSequenceClassification(config)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    batch = tokenizer([texts[i] for i in ids], padding=True, return_tensors="pt", return_token_type_ids=False)
    for _ in range(15):
        optimizer.zero_grad()
        net(**batch, labels=torch.tensor(truth[ids])).loss.backward()
        optimizer.step()
    return net.eval()


def rounds(strategy):
    ids, found = np.arange(10), []
    for number in range(5):
        out = badge.predict(fine_tune(ids), texts, tokenizer=tokenizer, max_length=32)
        rest = np.setdiff1d(np.arange(len(texts)), ids)
        found.append(float((out.probabilities.argmax(1).numpy() == truth)[rest].mean()))
        ids = np.concatenate([ids, badge.select_from(out, k=10, strategy=strategy, seed=number, exclude=ids)])
    return found, ids


found = {name: rounds(name) for name in ("badge", "rand")}
for name, (scores, ids) in found.items():
    print(name, [round(value, 2) for value in scores], "labels per class:", np.bincount(truth[ids]).tolist())

# %% [markdown]
# Is your model too large to fine-tune in each round? Keep it frozen, and train a linear head on its embeddings: pass
# `badge.training.Frozen("hf:name")` to a learner as the trainer. For a model without a head, `badge.predict(model,
# texts, embeddings="only")` returns the embeddings.
#
# The plot shows the accuracy on the texts without labels, round by round:

# %%
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
for name, (scores, _) in found.items():
    axes.plot(range(10, 60, 10), scores, marker="o", label=name)
axes.set(xlabel="number of labels", ylabel="accuracy on the rest of the pool", title="a tiny Llama, one seed")
axes.legend()
plt.show()
