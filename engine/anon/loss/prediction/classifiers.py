"""Train classifiers and measure their predictions. scikit-learn is imported here only, when it is needed."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from anon.core.arrays import Floats, Ints
from anon.errors import ConfigError

INSTALL = "pip install 'anon-engine[predict]'"
SEED = 0
BOOSTING = {"max_leaf_nodes": 15, "l2_regularization": 10.0}  # without the latter, rare classes make it diverge
DIGITS = 9  # of a predicted probability; smaller differences are ties
MODELS = ("gradient boosting", "logistic regression")


@dataclass(frozen=True)
class Examples:
    """Features [row, feature] with the class of each row, and how much each counts."""

    features: Floats
    classes: Ints
    weights: Floats | None = None


def require_classifiers() -> None:
    """Raise ConfigError, with the command that installs it, if scikit-learn is missing."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise ConfigError.at("--predict", "no scikit-learn", "the extra of this command", INSTALL) from None


def scores(model: str, train: Examples, test: Examples, count: int) -> dict[str, float]:
    """Train on some examples and return the accuracy and the AUC on others; `count` classes. One thread, so that sums
    have one order."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a regression that ends after its last iteration
        found = _predicted(model, train, test.features, count)
    return {"accuracy": accuracy(found, test.classes), "auc": auc(found, test.classes)}


def _predicted(model: str, train: Examples, features: Floats, count: int) -> Floats:
    """Return [row, class]: the probabilities that a trained model predicts; of a class without an example, 0."""
    known = np.unique(train.classes)
    probabilities = np.zeros((len(features), count))
    if len(known) == 1:
        probabilities[:, known[0]] = 1.0
        return probabilities
    fitted = _model(model)
    weights = {} if train.weights is None else {f"{fitted.steps[-1][0]}__sample_weight": train.weights}
    fitted.fit(train.features, train.classes, **weights)
    probabilities[:, known] = np.round(fitted.predict_proba(features), DIGITS)
    return probabilities


def _model(name: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "gradient boosting":
        boosting = HistGradientBoostingClassifier(**BOOSTING, early_stopping=False, random_state=SEED)
        return make_pipeline(boosting)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def accuracy(probabilities: Floats, classes: Ints) -> float:
    """Return the share of rows whose most probable class, the first of several, is their own."""
    return float((probabilities.argmax(axis=1) == classes).mean())


def auc(probabilities: Floats, classes: Ints) -> float:
    """Return the area under the ROC curve: the probability that a row of a class has a higher predicted probability of
    it than a row of another class, ties counting half. For several classes, the mean over those that rows of the test
    have, weighted by their rows (Provost and Domingos 2000); of two classes both have the same. 0.5 if there is one.

    >>> auc(np.array([[0.2, 0.8], [0.6, 0.4], [0.2, 0.8]]), np.array([1, 0, 0]))
    0.75
    """
    present = np.unique(classes)
    if len(present) < 2:
        return 0.5
    each = [_area(probabilities[:, one], classes == one) * int((classes == one).sum()) for one in present]
    return math.fsum(each) / len(classes)


def _area(score: Floats, own: Any) -> float:
    """Return the share of pairs of an own and another row in which the own has the higher score, ties counting half."""
    _, place, many = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(many) - (many - 1) / 2)[place]
    mine = int(own.sum())
    return float((ranks[own].sum() - mine * (mine + 1) / 2) / (mine * (len(score) - mine)))
