/* What loops of several criteria share: the largest counts of a group, an order of witnesses, and what keeps numbers
   above zero. */
#ifndef ANON_CRITERIA_KERNELS_COUNTS_H
#define ANON_CRITERIA_KERNELS_COUNTS_H

#include "loops.h"

/* How many values an individual has, for skylines: where KINDS of skyline.py lists it. */
enum { SINGLE, SET, MULTISET };

#define TINY 1e-150 /* as in arithmetic.py: what is above zero stays at or above this */

static inline double above(double number) { return number > TINY ? number : TINY; }

/* Fills `top` with the `size` largest of count[low:high], descending, padded with zeros. */
static inline void largest_counts(const int64_t *count, int64_t low, int64_t high, int64_t *top, int64_t size)
{
    for (int64_t j = 0; j < size; j++)
        top[j] = 0;
    for (int64_t e = low; e < high; e++) {
        const int64_t own = count[e];
        int64_t j = size - 1;
        if (own <= top[j])
            continue;
        for (; j > 0 && top[j - 1] < own; j--)
            top[j] = top[j - 1];
        top[j] = own;
    }
}

/* Lexicographic order of witnesses, so that ties do not depend on the order of the groups. */
static inline bool before(const int64_t *integers, const int64_t *witness, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        if (integers[i] != witness[i])
            return integers[i] < witness[i];
    return false;
}

#endif
