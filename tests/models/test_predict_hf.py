"""`badge.predict` on Hugging Face classifiers, built from tiny random configurations: nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import badge
from badge.errors import InputError, ModelError
from small_nets import refused

datasets = pytest.importorskip("datasets")
transformers = pytest.importorskip("transformers")

WORDS = ["a", "the", "film", "was", "good", "bad", "fine", "long", "and", "not", "very", "dull", "i", "saw", "it"]
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, size=n)) for n in RNG.integers(1, 12, size=23)]
SMALL = {"vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
SMALL |= {"max_position_embeddings": 40, "pad_token_id": 0, "num_labels": 3}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocab = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    backend = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=32,
        model_input_names=["input_ids", "attention_mask"],
    )


def bert(**changes: Any) -> Any:
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(transformers.BertConfig(**{**SMALL, **changes}))


def encoders() -> dict[str, Any]:
    t, c = transformers, SMALL
    torch.manual_seed(0)
    return {
        "bert": bert(),
        "roberta": t.RobertaForSequenceClassification(t.RobertaConfig(**c)),
        "distilbert": t.DistilBertForSequenceClassification(
            t.DistilBertConfig(vocab_size=24, dim=16, hidden_dim=20, n_layers=1, n_heads=2, num_labels=3)
        ),
    }


def decoders() -> dict[str, Any]:
    t, c = transformers, SMALL
    torch.manual_seed(0)
    gpt2 = t.GPT2Config(vocab_size=24, n_embd=16, n_layer=1, n_head=2, n_positions=40, pad_token_id=0, num_labels=3)
    return {
        "gpt2": t.GPT2ForSequenceClassification(gpt2),
        "llama": t.LlamaForSequenceClassification(t.LlamaConfig(**c, num_key_value_heads=2)),
        "one-logit llama": t.LlamaForSequenceClassification(t.LlamaConfig(**{**c, "num_labels": 1})),
    }


def last_hidden(model: Any, encoded: Any) -> Tensor:
    base = getattr(model, model.base_model_prefix)
    with torch.no_grad():
        return base(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"])[0]


def logits(model: Any, tokenizer: Any, texts: list[str]) -> Tensor:
    model.eval()
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert"])
def test_encoders(name: str, tokenizer: Any) -> None:
    model = encoders()[name]
    out = badge.predict(model, TEXTS, tokenizer=tokenizer, batch_size=8)
    expected = logits(model, tokenizer, TEXTS).softmax(dim=1)
    torch.testing.assert_close(out.probabilities, expected, rtol=1e-4, atol=1e-5)
    final = {"bert": "classifier", "roberta": "classifier.out_proj", "distilbert": "classifier"}[name]
    head = model.get_submodule(final)
    rebuilt = (out.embeddings @ head.weight.T + head.bias).softmax(dim=1).detach()
    torch.testing.assert_close(rebuilt, out.probabilities, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "one-logit llama"])
def test_decoders_score_every_token_and_keep_the_last(name: str, side: str, tokenizer: Any) -> None:
    model = decoders()[name].eval()
    tokenizer.padding_side = side
    try:
        out = badge.predict(model, TEXTS, tokenizer=tokenizer, batch_size=len(TEXTS))
        encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    finally:
        tokenizer.padding_side = "right"
    hidden, mask = last_hidden(model, encoded), encoded["attention_mask"]
    last = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
    kept = hidden[torch.arange(len(TEXTS)), last]
    torch.testing.assert_close(out.embeddings, kept, rtol=1e-4, atol=1e-5)
    z = (kept @ model.score.weight.T).detach()
    p = torch.sigmoid(z) if z.shape[1] == 1 else z.softmax(dim=1)
    torch.testing.assert_close(out.probabilities, p, rtol=1e-4, atol=1e-5)


def test_equal_scores_at_several_tokens_go_to_the_last_that_is_shown() -> None:
    from badge.models.heads import kept_tokens

    scores = torch.tensor([[[1.0], [2.0], [2.0], [2.0]]])
    mask = torch.tensor([[1, 1, 1, 0]])
    assert kept_tokens(scores, torch.tensor([[2.0]]), mask).tolist() == [2]
    assert kept_tokens(scores, torch.tensor([[2.0]]), None).tolist() == [3]
    assert kept_tokens(scores, torch.tensor([[3.0]]), mask) is None


def test_every_pool_of_texts_gives_the_same(tokenizer: Any) -> None:
    model = bert()
    reference = badge.predict(model, TEXTS, tokenizer=tokenizer)
    rows = {"text": TEXTS, "label": [0] * len(TEXTS)}
    raw = datasets.Dataset.from_dict(rows)
    ragged = raw.map(lambda row: tokenizer(row["text"]))
    padded = raw.map(lambda row: tokenizer(row["text"], padding="max_length"))
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    loader: Any = torch.utils.data.DataLoader(
        TEXTS, batch_size=5, collate_fn=lambda t: tokenizer(t, padding=True, return_tensors="pt")
    )
    pools = {
        "datasets.Dataset of texts": (raw, tokenizer),
        "a column of it": (raw["text"], tokenizer),
        "tokenized, ragged": (ragged, tokenizer),
        "a collator": (ragged, transformers.DataCollatorWithPadding(tokenizer)),
        "tokenized, padded": (padded.with_format("torch"), None),
        "tokenized, padded, as lists": (padded, None),
        "dict batch": (encoded, None),
        "list of dict batches": (
            [{k: v[:9] for k, v in encoded.items()}, {k: v[9:] for k, v in encoded.items()}],
            None,
        ),
        "list of dict items": ([{k: v[i] for k, v in encoded.items()} for i in range(len(TEXTS))], None),
        "array of texts": (np.array(TEXTS), tokenizer),
        "DataLoader with its own collate": (loader, None),
    }
    for name, (pool, tok) in pools.items():
        out = badge.predict(model, pool, tokenizer=tok, batch_size=7)
        torch.testing.assert_close(out.probabilities, reference.probabilities, rtol=1e-4, atol=1e-5, msg=name)
        torch.testing.assert_close(out.embeddings, reference.embeddings, rtol=1e-4, atol=1e-5, msg=name)


def test_the_mask_is_passed_on(tokenizer: Any) -> None:
    """The pools above would agree with each other also if none of them passed the mask."""
    model = bert().eval()
    one_by_one = torch.cat([badge.predict(model, [t], tokenizer=tokenizer).embeddings for t in TEXTS])
    together = badge.predict(model, TEXTS, tokenizer=tokenizer).embeddings
    torch.testing.assert_close(together, one_by_one, rtol=1e-4, atol=1e-5)
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    unmasked = badge.predict(model, encoded["input_ids"]).embeddings
    assert not torch.allclose(unmasked, together, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # read by peft
def test_token_types_reach_a_model_inside_peft(tokenizer: Any) -> None:
    from peft import LoraConfig, TaskType, get_peft_model

    encoded = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    encoded["token_type_ids"] = torch.ones_like(encoded["input_ids"])
    model = bert().eval()
    with torch.no_grad():
        expected = model(**encoded).logits.softmax(dim=1)
    wrapped: Any = get_peft_model(model, LoraConfig(task_type=TaskType.SEQ_CLS, target_modules=["query", "value"]))
    encoded["labels"] = torch.zeros(len(TEXTS), dtype=torch.int64)
    out = badge.predict(wrapped, encoded)
    torch.testing.assert_close(out.probabilities, expected, rtol=1e-4, atol=1e-5)
    head = wrapped.base_model.model.classifier.modules_to_save["default"]
    rebuilt = (out.embeddings @ head.weight.T + head.bias).softmax(dim=1).detach()
    torch.testing.assert_close(rebuilt, out.probabilities, rtol=1e-4, atol=1e-5)


def test_lora_on_a_decoder_with_its_score_head_wrapped(tokenizer: Any) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(target_modules=["q_proj", "score"], r=2)
    model: Any = inject_adapter_in_model(config, decoders()["llama"])
    torch.nn.init.normal_(model.score.lora_B["default"].weight)
    out = badge.predict(model, TEXTS, tokenizer=tokenizer)
    rebuilt = model.score(out.embeddings).softmax(dim=1).detach()
    torch.testing.assert_close(rebuilt, out.probabilities, rtol=1e-4, atol=1e-5)


def vit() -> Any:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        image_size=8,
        patch_size=4,
        num_labels=3,
    )
    return transformers.ViTForImageClassification(config)


def test_image_classifiers() -> None:
    from PIL import Image

    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 6], depths=[1, 1], num_labels=3)
    pixels = RNG.integers(0, 256, size=(9, 8, 8, 3), dtype=np.uint8)
    processor = transformers.ViTImageProcessor(size={"height": 8, "width": 8})
    images = [Image.fromarray(p) for p in pixels]
    values = processor(images, return_tensors="pt")["pixel_values"]
    table = datasets.Dataset.from_dict({"image": images, "label": [0] * 9})
    transformed = table.with_transform(lambda rows: dict(processor(rows["image"], return_tensors="pt")))
    for model, width in ((vit(), 16), (transformers.ResNetForImageClassification(config), 6)):
        reference = badge.predict(model, values)
        assert reference.embeddings.shape == (9, width)
        with torch.no_grad():
            torch.testing.assert_close(reference.probabilities, model.eval()(values).logits.softmax(dim=1))
        for pool, tok in (
            ({"pixel_values": values}, None),
            (images, processor),
            (table, processor),
            (transformed, None),
        ):
            out = badge.predict(model, pool, tokenizer=tok, batch_size=4)
            torch.testing.assert_close(out.embeddings, reference.embeddings, rtol=1e-4, atol=1e-5)


def test_a_plain_network_on_a_datasets_dataset() -> None:
    x = RNG.normal(size=(12, 5)).astype(np.float32)
    table = datasets.Dataset.from_dict({"features": x, "label": [0] * 12}).with_format("torch")
    torch.testing.assert_close(badge.predict(torch.nn.Linear(5, 3), table).embeddings, torch.from_numpy(x))


def test_what_is_refused(tokenizer: Any) -> None:
    ragged = {"input_ids": [[1, 2, 3], [4]], "attention_mask": [[1, 1, 1], [1]]}
    refused(InputError, "different lengths \\(1 to 3\\): pass tokenizer=", bert(), ragged)
    refused(InputError, "pass tokenizer=", bert(), TEXTS)
    two = datasets.Dataset.from_dict({"text": ["a"], "title": ["b"]})
    refused(InputError, "select_columns", bert(), two, tokenizer=tokenizer)
    refused(InputError, "streaming", bert(), two.to_iterable_dataset(), tokenizer=tokenizer)
    refused(InputError, "splits \\['train'\\]", bert(), datasets.DatasetDict(train=two), tokenizer=tokenizer)
    with pytest.raises(InputError, match="unclear which are inputs"):
        ids = torch.ones(4, 3, dtype=torch.int64)
        badge.predict(bert(), torch.utils.data.TensorDataset(ids, torch.ones_like(ids)))
    refused(ModelError, "problem_type='regression'", bert(problem_type="regression"), TEXTS, tokenizer=tokenizer)


def test_a_model_that_says_it_is_multi_label(tokenizer: Any) -> None:
    model = bert(problem_type="multi_label_classification")
    out = badge.predict(model, TEXTS, tokenizer=tokenizer)
    assert out.multilabel
    torch.testing.assert_close(out.probabilities, logits(model, tokenizer, TEXTS).sigmoid(), rtol=1e-4, atol=1e-5)
    single = badge.predict(model, TEXTS, tokenizer=tokenizer, multilabel=False)  # the caller knows better
    assert not single.multilabel
    torch.testing.assert_close(single.probabilities.sum(dim=1), torch.ones(len(TEXTS)))
    assert not badge.predict(bert(), TEXTS, tokenizer=tokenizer).multilabel


TITLES = [" ".join(RNG.choice(WORDS, size=2)) for _ in TEXTS]


def test_two_texts_are_a_pair(tokenizer: Any) -> None:
    model = bert(initializer_range=0.5).eval()
    encoded = tokenizer(TEXTS, TITLES, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits.softmax(dim=1)
    alone = badge.predict(model, TEXTS, tokenizer=tokenizer).probabilities
    assert not torch.allclose(alone, expected, atol=1e-4)
    pairs = list(zip(TEXTS, TITLES, strict=True))
    import pandas as pd

    pools = {
        "tuples": pairs,
        "lists": [list(pair) for pair in pairs],
        "tuples with a label": [(a, b, 1) for a, b in pairs],
        "columns of a dict": {"text": TEXTS, "text_pair": TITLES, "label": [0] * len(TEXTS)},
        "columns of a dataset": datasets.Dataset.from_dict({"premise": TEXTS, "hypothesis": TITLES, "idx": [1] * 23}),
        "columns in any order": datasets.Dataset.from_dict({"sentence2": TITLES, "sentence1": TEXTS}),
        "a table": pd.DataFrame({"question1": TEXTS, "question2": TITLES}),
        "dict items": [{"premise": a, "hypothesis": b, "label": 0} for a, b in pairs],
        "a loader": torch.utils.data.DataLoader(pairs, batch_size=5),
    }
    for name, pool in pools.items():
        out = badge.predict(model, pool, tokenizer=tokenizer, batch_size=7)
        torch.testing.assert_close(out.probabilities, expected, rtol=1e-4, atol=1e-5, msg=name)
    labelled = badge.predict(model, [(text, 1) for text in TEXTS], tokenizer=tokenizer).probabilities
    torch.testing.assert_close(labelled, alone, rtol=1e-4, atol=1e-5)


def test_of_several_text_columns_none_is_chosen_silently(tokenizer: Any) -> None:
    columns = {"text": TEXTS, "title": TITLES}
    for pool in (datasets.Dataset.from_dict(columns), columns, [dict(zip(columns, row)) for row in zip(TEXTS, TITLES)]):  # noqa: B905
        with pytest.raises(InputError, match=r"the text columns are \['text', 'title'\]: keep the one to read"):
            badge.predict(bert(), pool, tokenizer=tokenizer)


def limitless(tokenizer: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )


def test_texts_longer_than_the_models_positions(tokenizer: Any) -> None:
    long = [*TEXTS, " ".join(WORDS * 5)]
    free = limitless(tokenizer)
    assert free.model_max_length > 10**9
    t = transformers
    models = (bert(), t.RobertaForSequenceClassification(t.RobertaConfig(**SMALL)), decoders()["gpt2"])
    for model, positions in zip(models, (40, 39, 40), strict=True):
        out = badge.predict(model, long, tokenizer=free)
        cut = [*TEXTS, " ".join((WORDS * 5)[:positions])]
        torch.testing.assert_close(out.probabilities, badge.predict(model, cut, tokenizer=free).probabilities)
    shorter = badge.predict(bert(), long, tokenizer=free, max_length=5).probabilities
    five = [" ".join(text.split()[:5]) for text in long]
    torch.testing.assert_close(shorter, badge.predict(bert(), five, tokenizer=free).probabilities)
    assert len(badge.select(bert(), long, k=2, tokenizer=free, max_length=5)) == 2
    with pytest.raises(InputError, match="max_length=41 is more than the model's 40 positions"):
        badge.predict(bert(), long, tokenizer=free, max_length=41)
    refused(InputError, "max_length must be a whole number", bert(), long, tokenizer=free, max_length=0)
    with pytest.raises(InputError, match="pass such a tokenizer="):
        badge.predict(bert(), long, tokenizer=lambda texts: torch.zeros(len(texts), 3), max_length=3)


def test_a_text_that_is_missing_is_named_by_its_row(tokenizer: Any) -> None:
    import pandas as pd

    holes: list[Any] = list(TEXTS)
    holes[17] = None
    tables = (pd.Series(holes), pd.DataFrame({"text": holes}), datasets.Dataset.from_dict({"text": holes}))
    for pool in (holes, [*tables][2], {"text": holes}, [(text, 0) for text in holes]):
        with pytest.raises(InputError, match="row 17 of the pool is None where a text is needed"):
            badge.predict(bert(), pool, tokenizer=tokenizer, batch_size=17)  # it is the first of its batch
    for pool in tables[:2]:
        with pytest.raises(InputError, match=r"row 17 of the pool is (None|nan) where a text is needed"):
            badge.predict(bert(), pool, tokenizer=tokenizer, batch_size=5)
    pairs: list[Any] = [(text, title) for text, title in zip(TEXTS, TITLES, strict=True)]
    pairs[3] = (pairs[3][0], None)
    refused(InputError, r"row 3 of the pool is .* where a pair of texts is needed", bert(), pairs, tokenizer=tokenizer)


def test_a_tokenizer_that_cannot(tokenizer: Any) -> None:
    padless = limitless(tokenizer)
    padless.pad_token = None
    refused(InputError, r"cannot take rows 0 to 22 .*padding token", bert(), TEXTS, tokenizer=padless)
    refused(InputError, "one thing under two names", bert(), TEXTS, tokenizer=tokenizer, processor=tokenizer)


@pytest.mark.parametrize("keyword", ["processor", "tokenizer"])
def test_an_image_processor_runs_on_arrays_and_tensors(keyword: str) -> None:
    from PIL import Image

    model, processor = vit(), transformers.ViTImageProcessor(size={"height": 8, "width": 8})
    pixels = RNG.integers(0, 256, size=(9, 10, 12, 3), dtype=np.uint8)
    first = pixels.transpose(0, 3, 1, 2).copy()
    expected = badge.predict(
        model, processor([Image.fromarray(p) for p in pixels], return_tensors="pt")["pixel_values"]
    )
    pools = {
        "array, channels last": pixels,
        "array, channels first": first,
        "tensor, channels last": torch.from_numpy(pixels),
        "tensor, channels first": torch.from_numpy(first),
        "floats of 0 to 255": first.astype(np.float32),
        "list of arrays": list(pixels),
        "list of (tensor, label)": [(image, 1) for image in torch.from_numpy(first)],
        "TensorDataset": torch.utils.data.TensorDataset(torch.from_numpy(first), torch.zeros(9)),
        "dict": {"image": pixels, "label": [0] * 9},
        "dataset": datasets.Dataset.from_dict({"image": first, "label": [0] * 9}).with_format("torch"),
        "loader": torch.utils.data.DataLoader(torch.from_numpy(first), batch_size=4),
    }
    for name, pool in pools.items():
        out = badge.predict(model, pool, batch_size=4, **{keyword: processor})
        torch.testing.assert_close(out.probabilities, expected.probabilities, rtol=1e-4, atol=1e-5, msg=name)
    with pytest.raises(InputError, match="are scaled already, and the processor would scale them again"):
        badge.predict(model, first / 255, **{keyword: processor})
    refused(InputError, r"images of shape \(3, 10, 3\)", model, first[:, :, :, :3], **{keyword: processor})
    refused(InputError, r"images of shape \(10, 12\)", model, pixels[..., 0], **{keyword: processor})


def test_whole_pixels_without_their_processor_are_refused() -> None:
    """The model would turn them into floats of 0 to 255, and answer."""
    pixels = torch.randint(0, 256, (9, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for pool in (pixels, pixels.long(), {"pixel_values": pixels}, list(pixels)):
        refused(InputError, r"scale it as in training, .* or pass the image processor of the model", vit(), pool)
    badge.predict(vit(), pixels / 127.5 - 1)
