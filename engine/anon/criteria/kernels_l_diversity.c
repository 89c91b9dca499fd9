/* l-diversity: what the recursive and the entropy kind need of every group. */
#include "criteria/kernels_counts.h"

/* For some groups the largest count outside the don't-care set, and all other counts but their depth - 1 largest. `top`
   has room for depth counts.

   The depth - 1 largest without the head are the depth largest, less the head if it is among them, else the last. */
KERNEL(diversity_head_and_tail)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, count, start[SIZE(start) - 1]);
    IN(bool, dont_care, SIZE(count));
    IN(int64_t, which, ANY);
    INTEGER(depth);
    REQUIRE(depth > 0);
    OUT(int64_t, head, SIZE(which));
    OUT(int64_t, tail, SIZE(which));
    OUT(int64_t, top, depth);
    for (int64_t i = 0; i < SIZE(which); i++) {
        const int64_t low = start[which[i]], high = start[which[i] + 1];
        largest_counts(count, low, high, top, depth);
        int64_t most = 0, rest = 0;
        for (int64_t e = low; e < high; e++) {
            rest += count[e];
            most = greater(most, count[e] * !dont_care[e]);
        }
        for (int64_t j = 0; j < depth; j++)
            rest -= top[j];
        head[i] = most;
        tail[i] = rest + greater(most, top[depth - 1]) - most;
    }
    return 0;
}

/* Fills `listed` with the counts of the don't-care values, smallest first; returns how many there are. */
static int64_t ascending(ARRAY(const int64_t) count, ARRAY(const bool) dont_care, int64_t low, int64_t high,
                         ARRAY(int64_t) listed)
{
    int64_t size = 0;
    for (int64_t e = low; e < high; e++) {
        if (!dont_care[e])
            continue;
        int64_t j = size++;
        for (; j > 0 && listed[j - 1] > count[e]; j--)
            listed[j] = listed[j - 1];
        listed[j] = count[e];
    }
    return size;
}

/* exp(adjusted entropy) of every group, by Algorithm 1; inf where all values are don't-care values. `listed` has room
   for the counts of any group. */
KERNEL(diversity_effective_values)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, count, start[SIZE(start) - 1]);
    IN(bool, dont_care, SIZE(count));
    OUT(double, effective, SIZE(start) - 1);
    OUT(int64_t, listed, AT_LEAST(longest(start, SIZE(effective))));
    for (int64_t g = 0; g < SIZE(effective); g++) {
        const int64_t low = start[g], high = start[g + 1];
        int64_t total = 0;
        double logs = 0.0;
        for (int64_t e = low; e < high; e++)
            if (!dont_care[e]) {
                total += count[e];
                logs += (double)count[e] * log((double)count[e]);
            }
        if (total == 0) {
            effective[g] = INFINITY;
            continue;
        }
        const int64_t size = ascending(count, dont_care, low, high, listed);
        int64_t fixed = 0;
        while (fixed < size && log((double)listed[fixed]) * (double)total < logs) {
            total += listed[fixed];
            logs += (double)listed[fixed] * log((double)listed[fixed]);
            fixed++;
        }
        effective[g] = (double)(size - fixed) + (double)total * exp(-logs / (double)total);
    }
    return 0;
}
