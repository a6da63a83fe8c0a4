"""The trained model as a folder: the model, the classes, and a program that predicts."""

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from badge.core.importing import needs
from badge.core.writing import folder_for, replacing
from badge.errors import InputError
from badge.labelling.images import ImageFiles
from badge.learner import ActiveLearner
from badge.learner.classes import Classes
from badge.models import predict
from badge.training import Frozen
from badge.training.fit import align

PREDICT = '''"""The class of new items, by the model in this folder. `badge` has to be installed.

    python predict.py "a text" "another text"        images: names of files; rows of a table: JSON objects
"""

import sys
from pathlib import Path

from badge.labelling.saving import load

model = load(Path(__file__).parent)
for item, label in zip(sys.argv[1:], model.predict(sys.argv[1:])):
    print(label, item, sep="\\t")
'''


@dataclass(frozen=True)
class Saved:
    """A trained model and what it needs to read new items."""

    kind: str  #: text, image or row
    trainer: Any
    model: Any
    classes: list[Any]
    multilabel: bool

    def predict(self, items: list[Any]) -> list[Any]:
        said = predict(self.model, self._rows(items), multilabel=self.multilabel)
        outputs = align(said, self.model, len(self.classes), self.multilabel)
        classes = Classes(self.classes, self.multilabel)
        return [classes.decode(code) for code in classes.predicted(outputs.probabilities.numpy(force=True))]

    def _rows(self, items: list[Any]) -> Any:
        if self.kind == "row":
            items = [json.loads(item) if isinstance(item, str) else item for item in items]
        if not isinstance(self.trainer, Frozen):
            return self.trainer.transform(items) if hasattr(self.trainer, "transform") else items
        encoder = copy.copy(self.trainer)
        with TemporaryDirectory() as folder:  # embeddings of new items are not kept
            encoder.keep, encoder.progress = Path(folder), False
            raw = ImageFiles([Path(item) for item in items]) if self.kind == "image" else items
            return encoder.prepare(raw).clone()


def save_model(learner: ActiveLearner, kind: str, folder: Path) -> Path:
    """Train on the labels so far, if that was not done, and write the folder."""
    if len({str(label) for label in learner.labels.values()}) < 2:
        raise InputError("there is no model to save: labels of at least two classes are needed")
    saved = Saved(kind, learner.trainer, learner.model, list(learner.classes), learner.team.multilabel)
    made = folder_for(folder)
    with replacing(made / "model.joblib", binary=True) as file:
        _joblib().dump(saved, file)
    with replacing(made / "predict.py") as file:
        file.write(PREDICT)
    with replacing(made / "about.json") as file:
        about = {"kind": kind, "classes": saved.classes, "labels": len(learner.labels), "multilabel": saved.multilabel}
        file.write(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    return made


def load(folder: Path) -> Saved:
    """A saved model. Loading runs code of the file: open only what you trust."""
    found = _joblib().load(folder / "model.joblib")
    if not isinstance(found, Saved):
        raise InputError(f"{folder} holds no model of badge label")
    return found


def _joblib() -> Any:
    with needs("saving a model", "joblib", "label"):
        import joblib
    return joblib
