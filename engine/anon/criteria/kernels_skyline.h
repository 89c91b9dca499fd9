/* The formulas of Privacy Skyline (Chen, LeFevre, Ramakrishnan) in floating point, which search, check and explore
   share; Counts of skyline.py has them in exact arithmetic. All are for a group in which the sensitive value in
   question occurs: n people, s > 0 occurrences. */
#ifndef ANON_CRITERIA_KERNELS_SKYLINE_H
#define ANON_CRITERIA_KERNELS_SKYLINE_H

#include "criteria/kernels_counts.h"

/* How many values an individual has: the place in KINDS of skyline.py. */
enum { SINGLE, SET, MULTISET, KINDS };

#define TINY 1e-150 /* as in arithmetic.py: what is above zero stays at or above this */

enum { LARGE = 64 }; /* members of a family */

static inline double above(double number) { return number > TINY ? number : TINY; }

/* Other values of a group that are ruled out: how often they occur, and for sets the probability that somebody has none
   of them. */
typedef struct {
    int64_t named;
    double none;
} RuledOut;

static inline RuledOut nothing_ruled_out(void)
{
    const RuledOut nothing = {0, 1.0};
    return nothing;
}

/* Rules out one more value, which occurs `count` times. */
static inline void rule_out(int64_t kind, int64_t n, int64_t count, RuledOut *ruled_out)
{
    ruled_out->named += count;
    if (kind == SET && count < n && ruled_out->none > 0.0)
        ruled_out->none = above(ruled_out->none * (double)(n - count) / (double)n);
    else if (kind == SET)
        ruled_out->none = 0.0;
}

/* What is left of a group: single: the people without any of the values; otherwise the probability that somebody has
   none of those that are ruled out. */
static inline double left_of(int64_t kind, int64_t n, int64_t s, const RuledOut *ruled_out)
{
    if (kind == SINGLE)
        return (double)(n - s - ruled_out->named);
    if (kind == SET || ruled_out->named == 0)
        return ruled_out->none;
    return n > 1 ? above(exp((double)ruled_out->named * log1p(-1.0 / (double)n))) : 0.0;
}

/* T, with k people known not to be the target. */
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

/* V, with a family of m and k known people: a product of a factor for each member of the family or, which is the same
   number, for each occurrence; these are taken where they are fewer and the family is large. Every factor rises with n,
   and so does the product as it is rounded. */
static inline double family(int64_t kind, int64_t n, int64_t s, int64_t m, int64_t k)
{
    if (m == 0)
        return 1.0;
    if (kind == MULTISET)
        return n - k - m > 0 ? above(exp((double)s * log1p((double)-m / (double)(n - k)))) : 0.0;
    if (n - s - k - m + 1 <= 0)
        return 0.0;
    const bool by_occurrence = m > LARGE && s < m;
    const int64_t factors = by_occurrence ? s : m, gone = by_occurrence ? m : s;
    double product = 1.0;
    for (int64_t i = 0; i < factors && product > TINY; i++)
        product *= (double)(n - k - gone - i) / (double)(n - k - i);
    return above(product);
}

/* The `size` largest counts but one s, which is among them or, if it is smaller than all, the last in its place. */
static inline void without(int64_t s, ARRAY(const int64_t) top, int64_t size, ARRAY(int64_t) others)
{
    int64_t at = 0;
    for (int64_t i = 0; i < size; i++)
        if (at != i || (top[i] != s && i != size - 1))
            others[at++] = top[i];
}

#endif
