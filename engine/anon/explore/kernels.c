/* Random COUNT queries: how many rows of the source they count, and how many a release lets one expect. Queries combine
   a few runs of values of each column, so whether a value lies in a run is looked up once for all queries. */
#include "loops.h"

enum { WORD = 64 }; /* bits */

/* One step of turning words around: swaps the bits that the mask leaves out with those that it has `step` words on. */
static inline void swap_bits(uint64_t *words, int step, uint64_t mask)
{
    for (int first = 0; first < WORD; first += 2 * step)
        for (int k = first; k < first + step; k++) {
            const uint64_t swapped = ((words[k] >> step) ^ words[k + step]) & mask;
            words[k] ^= swapped << step;
            words[k + step] ^= swapped;
        }
}

/* Turns 64 words around: bit j of word i becomes bit i of word j (Warren, Hacker's Delight, 7-3). */
static void turn_around(uint64_t *words)
{
    swap_bits(words, 32, 0x00000000FFFFFFFFu);
    swap_bits(words, 16, 0x0000FFFF0000FFFFu);
    swap_bits(words, 8, 0x00FF00FF00FF00FFu);
    swap_bits(words, 4, 0x0F0F0F0F0F0F0F0Fu);
    swap_bits(words, 2, 0x3333333333333333u);
    swap_bits(words, 1, 0x5555555555555555u);
}

/* How many bits are set; compilers know these lines and take the processor's own instruction where it has one. */
static inline uint64_t set_bits(uint64_t word)
{
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (word * 0x0101010101010101u) >> 56;
}

/* The lowest bit that is set; one is. */
static inline int64_t lowest_bit(uint64_t word)
{
#if defined(__x86_64__) || defined(__aarch64__) /* an instruction there, elsewhere maybe a call of a library */
    return __builtin_ctzll(word);
#else
    return (int64_t)set_bits((word & (~word + 1)) - 1);
#endif
}

/* Of sensitive values from `low` up to but not including `high` the share that a group with the entries from `first` up
   to but not including `last` has: value[entry * width] are those of one column. */
static inline double held_share(const int64_t *value, int64_t width, const int64_t *count, int64_t first, int64_t last,
                                int64_t low, int64_t high, int64_t n)
{
    int64_t held = 0;
    for (int64_t i = first; i < last; i++)
        if (low <= value[i * width] && value[i * width] < high)
            held += count[i];
    return (double)held / (double)n;
}

/* Turns 64 words around, for tests. */
LOOP void queries_transpose(const Array *of_words)
{
    OUT(uint64_t, words);
    turn_around(words);
}

/* How many bits are set, for tests. */
LOOP int64_t queries_ones(int64_t word)
{
    return (int64_t)set_bits((uint64_t)word);
}

/* Adds to each query the rows of codes[column, row] that it counts. inside[column, code] has a bit for every run of the
   column; a query asks for one run in each of its columns. `bits` is room for 64 words of each column. */
LOOP void queries_count_rows(const Array *of_codes, const Array *of_inside, const Array *of_column, const Array *of_run,
                             const Array *of_counts, const Array *of_bits)
{
    IN(uint16_t, codes);
    IN(uint64_t, inside);
    IN(int64_t, column);
    IN(int64_t, run);
    OUT(uint64_t, counts);
    OUT(uint64_t, bits);
    const int64_t columns = SIZE(codes), rows = COLUMNS(codes), queries = SIZE(column), predicates = COLUMNS(column);
    for (int64_t first = 0; first < rows; first += WORD) {
        const int64_t size = lesser(WORD, rows - first);
        for (int64_t c = 0; c < columns; c++) {
            const uint16_t *const own = codes + c * rows + first;
            const uint64_t *const table = inside + c * COLUMNS(inside);
            uint64_t *const words = bits + c * WORD;
            for (int64_t i = 0; i < size; i++)
                words[i] = table[own[i]];
            for (int64_t i = size; i < WORD; i++)
                words[i] = 0;
            turn_around(words);
        }
        for (int64_t q = 0; q < queries; q++) {
            const int64_t *const in = column + q * predicates, *const asked = run + q * predicates;
            uint64_t found = bits[in[0] * WORD + asked[0]];
            for (int64_t p = 1; p < predicates; p++)
                found &= bits[in[p] * WORD + asked[p]];
            counts[q] += set_bits(found);
        }
    }
}

/* Adds to each query the rows that boxes let one expect, if all values under a label are equally likely and nobody
   knows who in a group has which of its sensitive values.

   A box has the values begin[column, box] up to but not including end, and `people` of a group of n individuals; boxes
   of a group are next to each other. A group has value[start[g]:start[g + 1], sensitive column] as often as `count`
   says. Run r of a column has the values from low[column, r] up to but not including high; sensitive columns are
   numbered on after the others. `share` is room for a number for each run. */
LOOP void queries_expect_rows(const Array *of_begin, const Array *of_end, const Array *of_people, const Array *of_group,
                              const Array *of_start, const Array *of_value, const Array *of_count, const Array *of_n,
                              const Array *of_low, const Array *of_high, const Array *of_column, const Array *of_run,
                              const Array *of_expected, const Array *of_share)
{
    IN(int64_t, begin);
    IN(int64_t, end);
    IN(int64_t, people);
    IN(int64_t, group);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, n);
    IN(int64_t, low);
    IN(int64_t, high);
    IN(int64_t, column);
    IN(int64_t, run);
    OUT(double, expected);
    OUT(double, share);
    const int64_t columns = SIZE(begin), boxes = SIZE(people), runs = COLUMNS(low), width = COLUMNS(value);
    const int64_t queries = SIZE(column), predicates = COLUMNS(column);
    int64_t before = -1;
    for (int64_t box = 0; box < boxes; box++) {
        const int64_t g = group[box];
        if (g != before) {
            before = g;
            for (int64_t c = columns; c < SIZE(low); c++)
                for (int64_t r = c * runs; r < (c + 1) * runs; r++)
                    share[r] = held_share(value + c - columns, width, count, start[g], start[g + 1], low[r], high[r],
                                          n[g]);
        }
        for (int64_t c = 0; c < columns; c++) {
            const int64_t first = begin[c * COLUMNS(begin) + box], last = end[c * COLUMNS(end) + box];
            const int64_t *const from = low + c * runs, *const to = high + c * runs;
            double *const own = share + c * runs;
            if (last - first == 1) {
                for (int64_t r = 0; r < runs; r++)
                    own[r] = ((from[r] <= first) & (first < to[r])) ? 1.0 : 0.0;
            } else {
                const double values = (double)(last - first);
                for (int64_t r = 0; r < runs; r++)
                    own[r] = (double)greater(lesser(last, to[r]) - greater(first, from[r]), 0) / values;
            }
        }
        const double weight = (double)people[box];
        for (int64_t q = 0; q < queries; q++) {
            const int64_t *const in = column + q * predicates, *const asked = run + q * predicates;
            double rows = share[in[0] * runs + asked[0]] * weight;
            if (rows == 0.0) /* often, and for many queries in a row, because they are in order */
                continue;
            for (int64_t p = 1; p < predicates; p++)
                rows *= share[in[p] * runs + asked[p]];
            expected[q] += rows;
        }
    }
}

/* What `expect_rows` does, in the same order, for boxes that have one value in every column: words[column, box] has a
   bit for every run of the column that the value lies in, and 64 boxes are looked at together. `bits` is room for 64
   words of each column, `share` for 64 times a number for each run of a sensitive column. */
LOOP void queries_expect_values(const Array *of_words, const Array *of_people, const Array *of_group,
                                const Array *of_start, const Array *of_value, const Array *of_count, const Array *of_n,
                                const Array *of_low, const Array *of_high, const Array *of_column, const Array *of_run,
                                const Array *of_expected, const Array *of_bits, const Array *of_share)
{
    IN(uint64_t, words);
    IN(int64_t, people);
    IN(int64_t, group);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, n);
    IN(int64_t, low);
    IN(int64_t, high);
    IN(int64_t, column);
    IN(int64_t, run);
    OUT(double, expected);
    OUT(uint64_t, bits);
    OUT(double, share);
    const int64_t columns = SIZE(words), sensitive = SIZE(low) - columns, boxes = SIZE(people), runs = COLUMNS(low);
    const int64_t queries = SIZE(column), predicates = COLUMNS(column), width = COLUMNS(value);
    const int64_t shares = sensitive * runs, last = predicates - 1, plain = sensitive == 0 ? predicates : last;
    const int64_t *const from = low + columns * runs, *const to = high + columns * runs;
    for (int64_t first = 0; first < boxes; first += WORD) {
        const int64_t size = lesser(WORD, boxes - first);
        for (int64_t c = 0; c < columns; c++) {
            const uint64_t *const given = words + c * COLUMNS(words) + first;
            uint64_t *const turned = bits + c * WORD;
            for (int64_t i = 0; i < size; i++)
                turned[i] = given[i];
            for (int64_t i = size; i < WORD; i++)
                turned[i] = 0;
            turn_around(turned);
        }
        for (int64_t i = 0; i < size; i++) {
            const int64_t g = group[first + i];
            double *const own = share + i * shares;
            if (i > 0 && group[first + i - 1] == g) {
                for (int64_t r = 0; r < shares; r++)
                    own[r] = own[r - shares];
                continue;
            }
            for (int64_t c = 0; c < sensitive; c++)
                for (int64_t r = c * runs; r < (c + 1) * runs; r++)
                    own[r] = held_share(value + c, width, count, start[g], start[g + 1], from[r], to[r], n[g]);
        }
        for (int64_t q = 0; q < queries; q++) {
            const int64_t *const in = column + q * predicates, *const asked = run + q * predicates;
            uint64_t found = bits[in[0] * WORD + asked[0]];
            for (int64_t p = 1; p < plain; p++)
                found &= bits[in[p] * WORD + asked[p]];
            double sum = expected[q];
            if (sensitive == 0) {
                for (; found != 0; found &= found - 1)
                    sum += (double)people[first + lowest_bit(found)];
            } else {
                const double *const held = share + (in[last] - columns) * runs + asked[last];
                for (; found != 0; found &= found - 1) {
                    const int64_t at = lowest_bit(found);
                    sum += (double)people[first + at] * held[at * shares];
                }
            }
            expected[q] = sum;
        }
    }
}
