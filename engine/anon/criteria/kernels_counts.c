/* What several criteria ask of the counts of groups. */
#include "criteria/kernels_counts.h"

/* Fills each row of `top` with the largest counts of its group, descending. */
KERNEL(counts_fill_largest)
{
    IN(int64_t, start, AT_LEAST(1));
    const int64_t groups = SIZE(start) - 1;
    IN(int64_t, count, start[groups]);
    OUT(int64_t, top, groups, AT_LEAST(1));
    const int64_t size = COLUMNS(top);
    for (int64_t g = 0; g < groups; g++)
        largest_counts(count, start[g], start[g + 1], top + g * size, size);
    return 0;
}

/* From a matrix with a row per group and a column per value: the people of each group, and where its values that occur
   end among those of all groups. */
KERNEL(counts_sizes)
{
    IN(int64_t, table, ANY, ANY);
    OUT(int64_t, n, SIZE(table));
    OUT(int64_t, end, SIZE(table));
    const int64_t values = COLUMNS(table);
    int64_t found = 0;
    for (int64_t g = 0; g < SIZE(table); g++) {
        int64_t people = 0;
        for (int64_t v = 0; v < values; v++) {
            people += table[g * values + v];
            found += table[g * values + v] != 0;
        }
        n[g] = people;
        end[g] = found;
    }
    return 0;
}

/* These values and their counts; both have room for one more. `start` has a zero before the ends. */
KERNEL(counts_occurring)
{
    IN(int64_t, table, ANY, ANY);
    IN(int64_t, start, SIZE(table) + 1);
    OUT(int64_t, value, start[SIZE(table)] + 1);
    OUT(int64_t, count, SIZE(value));
    const int64_t values = COLUMNS(table);
    int64_t at = 0;
    for (int64_t g = 0; g < SIZE(table); g++)
        for (int64_t v = 0; v < values; v++) {
            value[at] = v;
            count[at] = table[g * values + v];
            at += table[g * values + v] != 0;
        }
    return 0;
}
