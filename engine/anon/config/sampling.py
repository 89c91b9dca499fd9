"""The smallest group that random sampling and k-anonymity need for (epsilon, delta)-differential privacy (Li, Qardaji
and Su, "On sampling, anonymization, and differential privacy", 2012; Bild, Kuhn and Prasser, "SafePub", PoPETs 2018).

**Theorem.** Everybody is drawn with probability beta <= 1 - e^-epsilon, independently. Those who were drawn get labels
that depend on nothing but their own values. Groups with at least k drawn members are published with their sizes, and
nothing else is. Let gamma = 1 - (1 - beta) e^-epsilon, and a(n) = P[X > gamma n] for X ~ Binomial(n, beta). If
a(n) <= delta for all n >= k / gamma - 1, the release is (epsilon, delta)-differentially private: for all tables D and
D' that differ by one person and all sets S, P[M(D) in S] <= e^epsilon P[M(D') in S] + delta.

*Proof.* The person changes the distribution of one group, which has n members in one table and n - 1 in the other; the
others are drawn independently. Let P(n, j) be the probability that j of n are drawn.

P(n, j) / P(n - 1, j) = n (1 - beta) / (n - j), which is more than e^epsilon only if j > gamma n. So with n members the
event that a size is published whose ratio is too large has probability P[X > gamma n and X >= k]. If n >= k / gamma - 1
this is at most a(n). Otherwise it is at most P[X >= k], which grows with n up to the largest n below k / gamma; that n
is at least k / gamma - 1, and its floor(gamma n) + 1 is k, because gamma n is in [k - gamma, k). So it is at most a(n)
for that n. That nothing is published of the group, P[X < k], is less likely with n members than with n - 1.

P(n - 1, j) / P(n, j) = (n - j) / (n (1 - beta)) <= 1 / (1 - beta) <= e^epsilon, so in the other direction no size is
too telling, nor is their sum over all j < k. QED

The proof shows more: except with probability delta no output has a ratio of more than e^epsilon at all. Differential
privacy allows to subtract e^epsilon P(n - 1, j) from each P(n, j) that counts, so that k could be a little smaller;
like the authors, we do not.

a(n) is computed with rounding in the safe direction, from recurrences over n:

    P[X(n+1) >= t] = P[X(n) >= t] + beta P(n, t - 1),    P(n + 1, t - 1) = P(n, t - 1) (n + 1) (1 - beta) / (n + 2 - t).

Beyond some n it is below delta by Chernoff's bound: P[X >= gamma n] <= ((1 - beta + beta z) / z^gamma)^n for all z >=
1.

>>> drawn = Sampling.derived(Decimal(1), Decimal("1e-6"))
>>> drawn.k, round(float(drawn.share), 4)
(74, 0.6321)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor

COINS = 2**64  # a person is drawn if a coin of this size comes below a limit
ONE = 2**512  # the unit of numbers that are rounded
DIGITS = 150  # decimal digits of e^-epsilon


@dataclass(frozen=True)
class Sampling:
    """The probability of being drawn, and with it the promise."""

    share: Fraction  # a multiple of 1 / COINS
    epsilon: Decimal
    delta: Decimal

    @classmethod
    def derived(cls, epsilon: Decimal, delta: Decimal, share: Decimal | None = None) -> Sampling:
        """Return the sampling with a share of the individuals, or with the largest that epsilon allows."""
        chosen = largest_share(epsilon) if share is None else Fraction(share)
        return cls(Fraction(floor(chosen * COINS), COINS), epsilon, delta)

    @property
    def limit(self) -> int:
        """Return the coin from which on a person is not drawn."""
        return int(self.share * COINS)

    @cached_property
    def k(self) -> int:
        """Return the smallest group that may be published."""
        return least_group(self)


def largest_share(epsilon: Decimal) -> Fraction:
    """Return 1 - e^-epsilon, rounded down."""
    return 1 - _decay(epsilon)[1]


def _decay(epsilon: Decimal) -> tuple[Fraction, Fraction]:
    """Return bounds of e^-epsilon. The decimal module rounds it correctly."""
    with localcontext(prec=DIGITS):
        found = (-epsilon).exp()
        return Fraction(found.next_minus()), Fraction(found.next_plus())


@lru_cache
def least_group(drawn: Sampling) -> int:
    """Return the least k such that a(n) <= delta for all n >= k / gamma - 1. A tie that cannot be decided counts as
    more than delta."""
    low, high = (1 - (1 - drawn.share) * bound for bound in reversed(_decay(drawn.epsilon)))
    last, end = 0, _negligible(drawn.share, low, Fraction(drawn.delta))
    tail = _Tail(drawn.share)
    limit = floor(Fraction(drawn.delta) * ONE)
    for n in range(1, end):
        tail.reach(n, floor(low * n) + 1)
        if tail.most > limit:
            last = n
    return floor(high * (last + 1)) + 1


class _Tail:
    """P[X >= t] for X ~ Binomial(n, share), and P[X = t - 1], both with bounds in units of 1 / ONE. n grows by one from
    step to step, and t by one or not at all."""

    def __init__(self, share: Fraction) -> None:
        self.n, self.t, self.drawn, self.spared = 1, 1, int(share * COINS), int((1 - share) * COINS)
        self.tail = self._times((ONE, ONE), self.drawn, COINS)
        self.before = self._times((ONE, ONE), self.spared, COINS)

    @property
    def most(self) -> int:
        return self.tail[1]

    def reach(self, n: int, t: int) -> None:
        """Go to the next n and its t; or stay at the first."""
        if n > self.n:
            more = self._times(self.before, self.drawn, COINS)
            self.tail = self.tail[0] + more[0], self.tail[1] + more[1]
            self.before = self._times(self.before, n * self.spared, (n + 1 - self.t) * COINS)
            self.n = n
        if t > self.t:
            at = self._times(self.before, (n + 1 - self.t) * self.drawn, self.t * self.spared)
            self.tail, self.before, self.t = (self.tail[0] - at[1], self.tail[1] - at[0]), at, t

    @staticmethod
    def _times(value: tuple[int, int], numerator: int, denominator: int) -> tuple[int, int]:
        low, high = value
        return low * numerator // denominator, -(-high * numerator // denominator)


def _negligible(share: Fraction, gamma: Fraction, delta: Fraction) -> int:
    """Return a number of members from which on a(n) <= delta."""
    steps = ceil(64 / (gamma - share))
    power = floor(gamma * steps)  # share < power / steps <= gamma
    best = gamma * (1 - share) / (share * (1 - gamma))
    z = Fraction(max(ceil(best * 2**20), 2**20 + 1), 2**20)
    with localcontext(prec=DIGITS, rounding=ROUND_CEILING):
        factor = _power(_decimal(1 - share + share * z), steps) * _power(_decimal(1 / z), power)
        bound, times = Decimal(1), 0
        while bound > delta:
            bound, times = bound * factor, times + 1
    return times * steps


def _power(base: Decimal, exponent: int) -> Decimal:
    """Return a power by multiplications, each of which the context rounds."""
    found = Decimal(1)
    while exponent:
        if exponent & 1:
            found *= base
        exponent, base = exponent >> 1, base * base
    return found


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def at_most_the_largest(share: Decimal, epsilon: Decimal) -> bool:
    """Return whether a share of the individuals is small enough for epsilon."""
    return Fraction(share) <= largest_share(epsilon)


def rounded_share(drawn: Sampling) -> Decimal:
    """Return the share with the digits that readers need, rounded down."""
    return _decimal(drawn.share).quantize(Decimal("1e-6"), ROUND_FLOOR)
