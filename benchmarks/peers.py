"""The peers, each in the form that suits it best; imported only when they run.

scikit-learn and scikit-activeml work on the materialised matrix N × C·D, which is made inside the timer because they
cannot do without it. bmdal-reg is given its product kernel, which keeps the two factors apart as we do. DPPy is given
the Gram matrix.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from badge.features import gradient_embedding
from badge.outputs import Outputs

if TYPE_CHECKING:
    from benchmarks.contenders import Pick

__all__ = ["bmdal", "dppy_exact", "dppy_mcmc", "scikit_activeml", "scikit_learn"]


def scikit_learn(outputs: Outputs, k: int) -> Pick:
    """`kmeans_plusplus` with one trial per centre, which is k-means++ as the paper has it."""
    from sklearn.cluster import kmeans_plusplus

    def pick(seed: int) -> np.ndarray[Any, Any]:
        matrix = gradient_embedding(outputs).as_matrix().numpy()
        return np.asarray(kmeans_plusplus(matrix, k, random_state=seed, n_local_trials=1)[1])

    return pick


def scikit_activeml(outputs: Outputs, k: int) -> Pick:
    """`skactiveml.pool.Badge`, with a classifier that hands over the stored arrays; X is one column of row numbers."""
    from skactiveml.base import SkactivemlClassifier
    from skactiveml.pool import Badge

    p, h = outputs.probabilities.numpy(), outputs.embeddings.numpy()

    class Stored(SkactivemlClassifier):  # type: ignore[misc, unused-ignore]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Stored:
            return self

        def predict_proba(self, X: Any) -> tuple[Any, Any]:
            return p, h

    x, y = np.arange(len(outputs), dtype=np.float32)[:, None], np.full(len(outputs), np.nan)
    classifier = Stored(classes=list(range(p.shape[1])))

    def pick(seed: int) -> np.ndarray[Any, Any]:
        query = Badge(random_state=seed)
        return np.asarray(query.query(x, y, clf=classifier, fit_clf=False, batch_size=k), dtype=np.int64)

    return pick


def bmdal(method: str) -> Callable[[Outputs, int], Pick]:
    """A selection method of bmdal-reg by the name of its class, without training points."""

    def prepare(outputs: Outputs, k: int) -> Pick:
        from bmdal_reg.bmdal import selection
        from bmdal_reg.bmdal.feature_data import ListFeatureData, TensorFeatureData
        from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap, ProductFeatureMap
        from bmdal_reg.bmdal.features import Features

        from benchmarks.contenders import residual

        def pick(seed: int) -> np.ndarray[Any, Any]:
            factors = [residual(outputs.probabilities), outputs.embeddings]
            product = ProductFeatureMap([IdentityFeatureMap(f.shape[1]) for f in factors])
            pool = Features(product, ListFeatureData([TensorFeatureData(f) for f in factors])).precompute()
            with _numpy_1_names(), torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                chooser = getattr(selection, method)(pool, pool[:1], sel_with_train=False, verbosity=0)
                return np.asarray(chooser.select(k).numpy())

        return pick

    return prepare


@contextlib.contextmanager
def _numpy_1_names() -> Iterator[None]:
    """bmdal-reg 3.0.2 asks for `np.Inf`, which numpy 2 no longer has."""
    absent = not hasattr(np, "Inf")
    if absent:
        setattr(np, "Inf", np.inf)  # noqa: B010
    try:
        yield
    finally:
        if absent:
            delattr(np, "Inf")


def _dppy(outputs: Outputs) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        from dppy.finite_dpps import FiniteDPP
    exact = Outputs.trusted(outputs.probabilities.double(), outputs.embeddings.double())
    gram = gradient_embedding(exact).gram().numpy()
    gram[np.diag_indices(len(gram))] += 1e-12 * np.trace(gram)  # it refuses an eigenvalue of −1e-15
    return FiniteDPP("likelihood", L=gram)


def dppy_exact(outputs: Outputs, k: int) -> Pick:
    """Through the eigendecomposition of the Gram matrix."""
    return lambda seed: np.asarray(_dppy(outputs).sample_exact_k_dpp(size=k, random_state=seed))


def dppy_mcmc(outputs: Outputs, k: int) -> Pick:
    """The exchange chain with as many steps as ours, from k-means++ picks where ours starts by itself.

    It would else start from a random set, whose determinant is not above its threshold.
    """
    steps = max(1, math.floor(5 * k * math.log(k)))

    def pick(seed: int) -> np.ndarray[Any, Any]:
        from badge.strategies.choose import select_from

        start = select_from(outputs, k, "badge", seed=seed).tolist()
        return np.asarray(_dppy(outputs).sample_mcmc_k_dpp(size=k, nb_iter=steps + 1, s_init=start, random_state=seed))

    return pick
