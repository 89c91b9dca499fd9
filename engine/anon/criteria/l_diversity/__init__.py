"""l-diversity (Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, ACM TKDD 1(1), 2007): every group holds at least l
well-represented sensitive values. Four ways to say what well represented means:

    distinct     at least l different values
    frequency    the largest share of a value is at most 1/l
    entropy      exp(adjusted entropy) is at least l (Definitions 4.1 and 4.5)
    recursive    r_y < c * tail, strictly (Definitions 4.2 and 4.3)

Entropy and recursive know *don't-care values*, which may be disclosed. For the recursive kind r_y is the largest count
outside them, and tail is what is left of the other counts without their l - 2 largest. For entropy the counts of
don't-care values may be lowered as far as that raises the entropy: Algorithm 1 fixes, smallest first, those below
exp(M) and lowers the others to exp(M), where M, the log-entropic mean, is that of all counts fixed so far. With w
counts lowered and F people in the fixed ones, exp(adjusted entropy) = w + F exp(-M). A group in which all values are
don't-care values discloses nothing: it holds for both kinds.

`keep_possible` (Definition 4.4, for any kind) asks besides that each of some values is had by at least a percentage of
every group, so that nobody learns that somebody does not have it.

Monotone, all kinds: shares of a union lie between those of its parts, entropy is concave, and neither r_y grows nor
tail shrinks in proportion (Theorem 5.3). A group of don't-care values alone only adds counts that may be lowered.
With suppression only the distinct kind is: merging a group that would be dropped into one that passes may make both
fail, as the last example shows.

Figure 4 of the paper has three groups with counts 2, 1, 1: 3 values, exp(entropy) 2.828. Section 4.3 calls such a
group recursive (2, 3)-diverse, but 2 < 2 * 1 is false; it takes c > 2.

>>> import numpy as np
>>> from fractions import Fraction
>>> from anon.criteria.protocol import Groups
>>> figure_4 = Groups.dense(np.array([[1, 1, 2], [1, 2, 1], [1, 1, 2]]))
>>> def judged(kind, l, c=None):
...     criterion = l_diversity("condition", kind, Fraction(l), c and Fraction(c))
...     verdict = criterion.verdict(criterion.state(figure_4))
...     return verdict.safe, round(verdict.figure, 3)
>>> judged("distinct", 3), judged("frequency", 2), judged("entropy", "2.8"), judged("entropy", "2.83")
((True, 3.0), (True, 0.5), (True, 2.828), (False, 2.828))
>>> judged("recursive", 3, 2), judged("recursive", 3, "2.001")
((False, 2.0), (True, 2.0))

The paper's run of Algorithm 1: don't-care counts 11, 10, 3, 2, others 3, 4.

>>> fixed, lowered = lower([3, 4], [11, 10, 3, 2])
>>> fixed, lowered
([3, 4, 2, 3], 2)
>>> [round(log_entropic_mean(fixed[:size]), 3) for size in (2, 3, 4)]
[1.263, 1.136, 1.127]
>>> round(adjusted_entropy([3, 4], [11, 10, 3, 2]), 5)
1.77297

Counts 34, 33, 33 pass entropy 2.95; merged with 30 people of the first value, who fail alone and would be suppressed,
they fail as well.

>>> entropy = l_diversity("condition", "entropy", Fraction("2.95"))
>>> diversities = entropy.diversity(Groups.dense(np.array([[34, 33, 33], [30, 0, 0], [64, 33, 33]])))
>>> diversities.round(3).tolist()
[3.0, 1.0, 2.843]
"""

from anon.criteria.l_diversity.entropy import adjusted_entropy, log_entropic_mean, lower
from anon.criteria.l_diversity.kinds import LDiversity, l_diversity

__all__ = ["LDiversity", "adjusted_entropy", "l_diversity", "log_entropic_mean", "lower"]
