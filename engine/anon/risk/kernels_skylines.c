/* Knowledge skylines: which groups no other one dominates, and the negated ratio of Theorem 2 over those that are
   left. */
#include "criteria/kernels_skyline.h"

/* Fills left[group, l], l = 0, 1, ...: what is left of each group with its l most frequent other values ruled out. The
   rows of `largest` are all its counts, descending and padded with zeros, s among them. `others` is scratch. */
KERNEL(explored_fill_left)
{
    INTEGER(kind);
    REQUIRE(kind >= 0 && kind < KINDS);
    IN(int64_t, n, ANY);
    IN(int64_t, s, SIZE(n));
    IN(int64_t, largest, SIZE(n), AT_LEAST(1));
    OUT(double, left, SIZE(n), COLUMNS(largest));
    OUT(int64_t, others, COLUMNS(largest) - 1);
    const int64_t columns = COLUMNS(largest);
    for (int64_t g = 0; g < SIZE(n); g++) {
        RuledOut ruled_out = nothing_ruled_out();
        without(s[g], largest + g * columns, columns, others);
        for (int64_t l = 0; l < columns; l++) {
            left[g * columns + l] = left_of(kind, n[g], s[g], &ruled_out);
            if (l < columns - 1)
                rule_out(kind, n[g], others[l], &ruled_out);
        }
    }
    return 0;
}

/* Marks the groups that no earlier one dominates by a rank and a `left` as low as theirs. `tree` holds, all infinite at
   first, the least `left` of ranks below powers of two (a Fenwick tree); ranks are below its last place. */
KERNEL(explored_keep_undominated)
{
    IN(int64_t, rank, ANY);
    IN(double, left, SIZE(rank));
    OUT(double, tree, AT_LEAST(1));
    OUT(bool, keep, SIZE(rank));
    for (int64_t i = 0; i < SIZE(rank); i++) {
        double lowest = INFINITY;
        for (int64_t at = rank[i] + 1; at > 0; at -= at & -at)
            lowest = tree[at] < lowest ? tree[at] : lowest;
        keep[i] = left[i] < lowest;
        if (keep[i])
            for (int64_t at = rank[i] + 1; at < SIZE(tree); at += at & -at)
                tree[at] = left[i] < tree[at] ? left[i] : tree[at];
    }
    return 0;
}

/* Makes a number the least so far, and tells where it is. */
static inline void keep_least(double number, int64_t place, double *least, int64_t *at)
{
    if (number < *least) {
        *least = number;
        *at = place;
    }
}

/* The three negated ratios of Theorem 2, and where the minima behind SS1 to SS5 are: the first three among groups of n
   people with s occurrences, of which so much is `left`, the others among the groups of the families. */
KERNEL(explored_least_ratios)
{
    INTEGER(kind);
    REQUIRE(kind >= 0 && kind < KINDS);
    IN(int64_t, n, ANY);
    IN(int64_t, s, SIZE(n));
    IN(double, left, SIZE(n));
    IN(int64_t, family_n, ANY);
    IN(int64_t, family_s, SIZE(family_n));
    INTEGER(k);
    INTEGER(m);
    OUT(double, ratios, 3);
    OUT(int64_t, at, 5);
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
    return 0;
}
