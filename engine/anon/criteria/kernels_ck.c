/* (c,k)-safety: from the largest counts of each group to the minima over all groups, which the search, `check` and
   `verify` then judge. */
#include "criteria/kernels_counts.h"

#define LEAST_PRODUCT 1e-300 /* stands for products that would underflow: zero is kept for chances that are zero */

/* Fills chance[h], h = 0..size: the least probability that h atoms about one group are all false, given its `size`
   largest counts.

   product[i, h] is the least one with i people; people come by descending number of atoms, so j only falls. With
   fewer atoms than values every factor is positive, and with as many one person runs out of values. */
static void least_absences(int64_t n, ARRAY(const int64_t) top, int64_t size, ARRAY(double) product,
                           ARRAY(double) chance)
{
    const int64_t columns = size + 1;
    int64_t most = 0, named = 0;
    while (most < size && named + top[most] < n)
        named += top[most++];
    for (int64_t i = 0; i <= most; i++)
        for (int64_t h = i; h <= most; h++)
            product[i * columns + h] = INFINITY;
    product[0] = 1.0;
    for (int64_t j = most; j > 0; j--) {
        for (int64_t i = 0; i < most / j; i++) {
            const double factor = (double)(n - i - named) / (double)(n - i);
            const ARRAY(const double) fewer = product + i * columns;
            const ARRAY(double) more = product + (i + 1) * columns + j;
            for (int64_t h = i * j; h <= most - j; h++) {
                const double lower = fewer[h] * factor, kept = LEAST_PRODUCT > lower ? LEAST_PRODUCT : lower;
                more[h] = lower < more[h] ? kept : more[h]; /* stored always: vectors with gaps take long to store */
            }
        }
        named -= top[j - 1];
    }
    for (int64_t h = 0; h <= size; h++) {
        double least = h <= most ? INFINITY : 0.0;
        for (int64_t i = 0; h <= most && i <= h; i++)
            if (product[i * columns + h] < least)
                least = product[i * columns + h];
        chance[h] = least;
    }
}

/* Lowers values[owner] (F_0..F_k, then f_1..f_k) by every group; fills witness[owner] too unless it is empty. A witness
   is n, the k + 1 largest counts, and the group; `integers` has room for one, `chance` and `product` for k + 2 chances
   and as many times as many. */
KERNEL(ck_fold)
{
    Groups groups;
    TAKE(Groups, &groups);
    IN(int64_t, owner, groups.size);
    INTEGER(k);
    REQUIRE(k >= 0);
    OUT(double, values, ANY, 2 * k + 1);
    OUT(int64_t, witness, ANY, 2 * k + 1, k + 3);
    REQUIRE(SIZE(witness) == 0 || SIZE(witness) == SIZE(values));
    INTEGER(first);
    OUT(int64_t, integers, k + 3);
    OUT(double, chance, k + 2);
    OUT(double, product, k + 2, k + 2);
    const int64_t columns = COLUMNS(values), width = k + 3;
    const bool keep = SIZE(witness) > 0;
    const ARRAY(int64_t) top = integers + 1;
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t n = groups.n[g];
        if (n == 0)
            continue;
        largest_counts(groups.count, groups.start[g], groups.start[g + 1], top, k + 1);
        integers[0] = n;
        integers[k + 2] = first + g;
        least_absences(n, top, k + 1, product, chance);
        const double odds = (double)n / (double)top[0];
        for (int64_t column = 0; column < columns; column++) {
            const int64_t at = owner[g] * columns + column;
            const double figure = column <= k ? chance[column + 1] * odds : chance[column - k];
            bool lower = figure < values[at];
            if (keep && figure == values[at])
                lower = before(integers, witness + at * width, width);
            if (!lower)
                continue;
            values[at] = figure;
            for (int64_t i = 0; keep && i < width; i++)
                witness[at * width + i] = integers[i];
        }
    }
    return 0;
}
