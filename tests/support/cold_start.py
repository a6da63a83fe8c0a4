"""The first batch of the labelling page: typical texts against random ones.

    python tests/support/cold_start.py trec.jsonl.xz banking77.jsonl.xz

The files are those of `simulate_person.py`. Test accuracy of the page's default model after 50 labels, three seeds.
"""

from __future__ import annotations

import json
import lzma
import sys

import numpy as np

import badge
from badge.labelling.models import Texts


def main() -> None:
    for file in sys.argv[1:]:
        with lzma.open(file, "rt") as lines:
            rows = sorted(map(json.loads, lines), key=lambda row: row["split"] != "train")
        pool = sum(row["split"] == "train" for row in rows)
        names = sorted({row["label"] for row in rows})
        truth = np.array([names.index(row["label"]) for row in rows])
        trainer = Texts(len(names))
        texts = trainer.prepare([row["text"] for row in rows])
        for first in ("rand", "typiclust", "kmeanspp"):
            found = []
            for seed in range(3):
                ids = badge.select_from(badge.Outputs(embeddings=texts[:pool]), k=50, strategy=first, seed=seed)
                model = trainer.fit(texts[ids], truth[ids], np.random.default_rng(seed))
                said = np.asarray(model.classes_)[model(texts[pool:]).argmax(dim=1).numpy()]
                found.append(float((said == truth[pool:]).mean()))
            print(f"{file}: {first} {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")


if __name__ == "__main__":
    main()
