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

/* From a matrix with a row per group and a column per value: the people of each group, and where its values that occur
   end among those of all groups. */
LOOP void counts_sizes(const Array *of_table, const Array *of_n, const Array *of_end)
{
    IN(int64_t, table);
    OUT(int64_t, n);
    OUT(int64_t, end);
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
}

/* These values and their counts; both have room for one more. */
LOOP void counts_occurring(const Array *of_table, const Array *of_value, const Array *of_count)
{
    IN(int64_t, table);
    OUT(int64_t, value);
    OUT(int64_t, count);
    const int64_t values = COLUMNS(table);
    int64_t at = 0;
    for (int64_t g = 0; g < SIZE(table); g++)
        for (int64_t v = 0; v < values; v++) {
            value[at] = v;
            count[at] = table[g * values + v];
            at += table[g * values + v] != 0;
        }
}
