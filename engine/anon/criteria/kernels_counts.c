/* What several criteria ask of the counts of groups. */
#include "criteria/kernels_counts.h"

/* Fills each row of `top` with the largest counts of its group, descending. */
LOOP void counts_fill_largest(const Array *of_start, const Array *of_count, const Array *of_top)
{
    IN(int64_t, start);
    IN(int64_t, count);
    OUT(int64_t, top);
    const int64_t size = COLUMNS(top);
    for (int64_t g = 0; g < SIZE(top); g++)
        largest_counts(count, start[g], start[g + 1], top + g * size, size);
}
