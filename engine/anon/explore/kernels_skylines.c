/* Knowledge skylines: which groups no other one outdoes, and the negated ratio of Theorem 2 over those that are
   left. */
#include "criteria/kernels_counts.h"
#include "loops.h"

enum { DIVIDED = 8 }; /* factors that are divided at once: fewer divisions, and far from what a double can hold */

/* Marks the groups that no earlier one outdoes by a rank and a `left` as low as theirs. `tree` holds, all infinite at
   first, the least `left` of ranks below powers of two (a Fenwick tree). */
LOOP void explored_keep_undominated(const Array *of_rank, const Array *of_left, const Array *of_tree,
                                    const Array *of_keep)
{
    IN(int64_t, rank);
    IN(double, left);
    OUT(double, tree);
    OUT(bool, keep);
    for (int64_t i = 0; i < SIZE(rank); i++) {
        double lowest = INFINITY;
        for (int64_t at = rank[i] + 1; at > 0; at -= at & -at)
            lowest = tree[at] < lowest ? tree[at] : lowest;
        keep[i] = left[i] < lowest;
        if (keep[i])
            for (int64_t at = rank[i] + 1; at < SIZE(tree); at += at & -at)
                tree[at] = left[i] < tree[at] ? left[i] : tree[at];
    }
}

/* T, given what is left of the group once l values are ruled out. */
static inline double target(int64_t kind, int64_t n, int64_t s, double left, int64_t k)
{
    if (kind == SINGLE)
        return left > (double)k ? (left - (double)k) / (double)s : 0.0;
    if (left <= 0.0)
        return 0.0;
    if (kind == SET)
        return n - s - k > 0 ? above((double)(n - s - k) / (double)s * left) : 0.0;
    if (n - k - 1 <= 0)
        return 0.0;
    const double nobody = (double)s * log1p(-1.0 / (double)(n - k));
    return above(exp(nobody) / -expm1(nobody) * left);
}

/* V: with m relatives and s occurrences it is a product of as many factors as the fewer of them. */
static inline double family(int64_t kind, int64_t n, int64_t s, int64_t m, int64_t k)
{
    if (m == 0)
        return 1.0;
    if (kind == MULTISET)
        return n - k - m > 0 ? above(exp((double)s * log1p((double)-m / (double)(n - k)))) : 0.0;
    if (n - s - k - m + 1 <= 0)
        return 0.0;
    int64_t factors = lesser(s, m);
    double product = 1.0, top = (double)(n - k - greater(s, m)), bottom = (double)(n - k);
    for (; factors >= DIVIDED; factors -= DIVIDED) {
        double numerator = 1.0, denominator = 1.0;
        for (int j = 0; j < DIVIDED; j++) {
            numerator *= top - j;
            denominator *= bottom - j;
        }
        top -= DIVIDED;
        bottom -= DIVIDED;
        product *= numerator / denominator;
        if (product < TINY)
            return TINY;
    }
    for (; factors > 0; factors--)
        product *= top-- / bottom--;
    return above(product);
}

/* Makes a number the least so far, and tells where it is. */
static inline void keep_least(double number, int64_t place, double *least, int64_t *at)
{
    if (number < *least) {
        *least = number;
        *at = place;
    }
}

/* The three negated ratios of Theorem 2, and where the minima behind SS1 to SS5 are. */
LOOP void explored_least_ratios(int64_t kind, const Array *of_n, const Array *of_s, const Array *of_left,
                                const Array *of_family_n, const Array *of_family_s, int64_t k, int64_t m,
                                const Array *of_ratios, const Array *of_at)
{
    IN(int64_t, n);
    IN(int64_t, s);
    IN(double, left);
    IN(int64_t, family_n);
    IN(int64_t, family_s);
    OUT(double, ratios);
    OUT(int64_t, at);
    double one = INFINITY, two = INFINITY, three = INFINITY, four = INFINITY, five = INFINITY;
    for (int64_t g = 0; g < SIZE(n); g++) {
        const double known = target(kind, n[g], s[g], left[g], k);
        keep_least(known * family(kind, n[g], s[g], m, k + 1), g, &one, &at[0]);
        keep_least(target(kind, n[g], s[g], left[g], 0), g, &two, &at[1]);
        keep_least(known, g, &three, &at[2]);
    }
    for (int64_t f = 0; f < SIZE(family_n); f++) {
        keep_least(family(kind, family_n[f], family_s[f], m, 0), f, &four, &at[3]);
        keep_least(family(kind, family_n[f], family_s[f], m, k), f, &five, &at[4]);
    }
    ratios[0] = one;
    ratios[1] = two * five;
    ratios[2] = three * four;
}
