/* What kernels of several criteria share: groups as arguments, the largest counts of a group, and an order of
   witnesses. */
#ifndef ANON_CRITERIA_KERNELS_COUNTS_H
#define ANON_CRITERIA_KERNELS_COUNTS_H

#include "core/kernels.h"

/* Groups of n[g] people each; value[start[g]:start[g + 1]] occur in group g, each as often as `count` says. */
typedef struct {
    ARRAY(const int64_t) n, start, value, count;
    int64_t size;
} Groups;

static inline int64_t take_Groups(Call *call, Groups *groups)
{
    IN(int64_t, n, ANY);
    IN(int64_t, start, SIZE(n) + 1);
    IN(int64_t, value, start[SIZE(n)]);
    IN(int64_t, count, SIZE(value));
    const Groups taken = {n, start, value, count, SIZE(n)};
    *groups = taken;
    return 0;
}

/* The most values that occur in one of some groups. */
static inline int64_t longest(ARRAY(const int64_t) start, int64_t groups)
{
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++)
        most = greater(most, start[g + 1] - start[g]);
    return most;
}

/* Fills `top` with the `size` largest of count[low:high], descending, padded with zeros. */
static inline void largest_counts(ARRAY(const int64_t) count, int64_t low, int64_t high, ARRAY(int64_t) top,
                                  int64_t size)
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
static inline bool before(ARRAY(const int64_t) integers, ARRAY(const int64_t) witness, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        if (integers[i] != witness[i])
            return integers[i] < witness[i];
    return false;
}

#endif
