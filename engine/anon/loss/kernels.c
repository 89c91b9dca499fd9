/* Random COUNT queries: how many rows of the source they count, and how many a release lets one expect. Queries combine
   a few runs of values of each column, so whether a value lies in a run is looked up once for all queries. At the end
   the nearest people of a record, for the lower bound of the loss. */
#include "core/kernels.h"

enum { WORD = 64 }; /* bits */

/* One step of turning words around: swaps the bits that the mask leaves out with those that it has `step` words on. */
static inline void swap_bits(ARRAY(uint64_t) words, int step, uint64_t mask)
{
    for (int first = 0; first < WORD; first += 2 * step)
        for (int k = first; k < first + step; k++) {
            const uint64_t swapped = ((words[k] >> step) ^ words[k + step]) & mask;
            words[k] ^= swapped << step;
            words[k + step] ^= swapped;
        }
}

/* Turns 64 words around: bit j of word i becomes bit i of word j (Warren, Hacker's Delight, 7-3). */
static void turn_around(ARRAY(uint64_t) words)
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

/* Boxes of a release: people[box] individuals of group[box], boxes of a group next to each other. A group of n
   individuals has value[start[g]:start[g + 1], sensitive column] as often as `count` says. */
typedef struct {
    ARRAY(const int64_t) people, group, start, value, count, n;
    int64_t size, sensitive;
} Boxes;

static inline int64_t take_Boxes(Call *call, Boxes *boxes)
{
    IN(int64_t, people, ANY);
    IN(int64_t, group, SIZE(people));
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, value, start[SIZE(start) - 1], ANY);
    IN(int64_t, count, SIZE(value));
    IN(int64_t, n, SIZE(start) - 1);
    const Boxes taken = {people, group, start, value, count, n, SIZE(people), COLUMNS(value)};
    *boxes = taken;
    return 0;
}

/* Run r of a column has the values from low[column, r] up to but not including high; sensitive columns are numbered on
   after the others. */
typedef struct {
    ARRAY(const int64_t) low, high;
    int64_t columns, count; /* of runs in each column */
} Runs;

static inline int64_t take_Runs(Call *call, Runs *runs)
{
    IN(int64_t, low, ANY, ANY);
    IN(int64_t, high, SIZE(low), COLUMNS(low));
    const Runs taken = {low, high, SIZE(low), COLUMNS(low)};
    *runs = taken;
    return 0;
}

/* A query counts the rows that are in one run of each of its columns: run[query, predicate] of column[query,
   predicate], which is one of `columns` with `runs` each. */
typedef struct {
    ARRAY(const int64_t) column, run;
    int64_t size, predicates;
} Queries;

static inline int64_t take_Queries(Call *call, Queries *queries)
{
    IN(int64_t, column, ANY, AT_LEAST(1));
    IN(int64_t, run, SIZE(column), COLUMNS(column));
    const Queries taken = {column, run, SIZE(column), COLUMNS(column)};
    *queries = taken;
    return 0;
}

/* Fills `share` with the part of a group that has a value of each run of one sensitive column. */
static inline void fill_held(const Boxes *boxes, int64_t g, int64_t sensitive, const Runs *runs, ARRAY(double) share)
{
    const ARRAY(const int64_t) value = boxes->value + sensitive, count = boxes->count;
    const int64_t first = boxes->start[g], last = boxes->start[g + 1], width = boxes->sensitive;
    const int64_t column = runs->columns - width + sensitive;
    for (int64_t r = 0; r < runs->count; r++) {
        const int64_t low = runs->low[column * runs->count + r], high = runs->high[column * runs->count + r];
        int64_t held = 0;
        for (int64_t i = first; i < last; i++)
            if (low <= value[i * width] && value[i * width] < high)
                held += count[i];
        share[r] = (double)held / (double)boxes->n[g];
    }
}

/* Adds to each query the rows of codes[column, row] that it counts. inside[column, code] has a bit for every run of the
   column. `bits` is room for 64 words of each column. */
KERNEL(queries_count_rows)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(uint64_t, inside, SIZE(codes), ANY);
    Queries queries;
    TAKE(Queries, &queries);
    OUT(uint64_t, counts, queries.size);
    OUT(uint64_t, bits, SIZE(codes), WORD);
    const int64_t columns = SIZE(codes), rows = COLUMNS(codes), predicates = queries.predicates;
    for (int64_t first = 0; first < rows; first += WORD) {
        const int64_t size = lesser(WORD, rows - first);
        for (int64_t c = 0; c < columns; c++) {
            const ARRAY(const uint16_t) own = codes + c * rows + first;
            const ARRAY(const uint64_t) table = inside + c * COLUMNS(inside);
            const ARRAY(uint64_t) words = bits + c * WORD;
            for (int64_t i = 0; i < size; i++)
                words[i] = table[own[i]];
            for (int64_t i = size; i < WORD; i++)
                words[i] = 0;
            turn_around(words);
        }
        for (int64_t q = 0; q < queries.size; q++) {
            const ARRAY(const int64_t) column = queries.column + q * predicates, run = queries.run + q * predicates;
            uint64_t found = bits[column[0] * WORD + run[0]];
            for (int64_t p = 1; p < predicates; p++)
                found &= bits[column[p] * WORD + run[p]];
            counts[q] += set_bits(found);
        }
    }
    return 0;
}

/* Adds to each query the rows that boxes let one expect, if all values under a label are equally likely and nobody
   knows who in a group has which of its sensitive values.

   A box has the values begin[column, box] up to but not including end. `share` is room for a number for each run. */
KERNEL(queries_expect_rows)
{
    Boxes boxes;
    TAKE(Boxes, &boxes);
    IN(int64_t, begin, ANY, boxes.size);
    IN(int64_t, end, SIZE(begin), boxes.size);
    Runs runs;
    TAKE(Runs, &runs);
    REQUIRE(runs.columns == SIZE(begin) + boxes.sensitive);
    Queries queries;
    TAKE(Queries, &queries);
    OUT(double, expected, queries.size);
    OUT(double, share, runs.columns, runs.count);
    const int64_t columns = SIZE(begin), count = runs.count, predicates = queries.predicates;
    int64_t before = -1;
    for (int64_t box = 0; box < boxes.size; box++) {
        const int64_t g = boxes.group[box];
        if (g != before) {
            before = g;
            for (int64_t c = 0; c < boxes.sensitive; c++)
                fill_held(&boxes, g, c, &runs, share + (columns + c) * count);
        }
        for (int64_t c = 0; c < columns; c++) {
            const int64_t first = begin[c * boxes.size + box], last = end[c * boxes.size + box];
            const ARRAY(const int64_t) from = runs.low + c * count, to = runs.high + c * count;
            const ARRAY(double) own = share + c * count;
            if (last - first == 1) {
                for (int64_t r = 0; r < count; r++)
                    own[r] = ((from[r] <= first) & (first < to[r])) ? 1.0 : 0.0;
            } else {
                const double values = (double)(last - first);
                for (int64_t r = 0; r < count; r++)
                    own[r] = (double)greater(lesser(last, to[r]) - greater(first, from[r]), 0) / values;
            }
        }
        const double weight = (double)boxes.people[box];
        for (int64_t q = 0; q < queries.size; q++) {
            const ARRAY(const int64_t) column = queries.column + q * predicates, run = queries.run + q * predicates;
            double rows = share[column[0] * count + run[0]] * weight;
            if (rows == 0.0) /* often, and for many queries in a row, because they are in order */
                continue;
            for (int64_t p = 1; p < predicates; p++)
                rows *= share[column[p] * count + run[p]];
            expected[q] += rows;
        }
    }
    return 0;
}

/* What `expect_rows` does, in the same order, for boxes that have one value in every column: words[column, box] has a
   bit for every run of the column that the value lies in, and 64 boxes are looked at together. `bits` is room for 64
   words of each column, `share` for 64 times a number for each run of a sensitive column. */
KERNEL(queries_expect_values)
{
    Boxes boxes;
    TAKE(Boxes, &boxes);
    IN(uint64_t, words, ANY, boxes.size);
    Runs runs;
    TAKE(Runs, &runs);
    REQUIRE(runs.columns == SIZE(words) + boxes.sensitive && runs.count <= WORD);
    Queries queries;
    TAKE(Queries, &queries);
    OUT(double, expected, queries.size);
    OUT(uint64_t, bits, SIZE(words), WORD);
    OUT(double, share, WORD, boxes.sensitive, runs.count);
    const int64_t columns = SIZE(words), sensitive = boxes.sensitive, predicates = queries.predicates;
    const int64_t shares = sensitive * runs.count, last = predicates - 1, plain = sensitive == 0 ? predicates : last;
    for (int64_t first = 0; first < boxes.size; first += WORD) {
        const int64_t size = lesser(WORD, boxes.size - first);
        for (int64_t c = 0; c < columns; c++) {
            const ARRAY(const uint64_t) given = words + c * boxes.size + first;
            const ARRAY(uint64_t) turned = bits + c * WORD;
            for (int64_t i = 0; i < size; i++)
                turned[i] = given[i];
            for (int64_t i = size; i < WORD; i++)
                turned[i] = 0;
            turn_around(turned);
        }
        for (int64_t i = 0; i < size; i++) {
            const int64_t g = boxes.group[first + i];
            const ARRAY(double) own = share + i * shares;
            if (i > 0 && boxes.group[first + i - 1] == g) {
                for (int64_t r = 0; r < shares; r++)
                    own[r] = own[r - shares];
                continue;
            }
            for (int64_t c = 0; c < sensitive; c++)
                fill_held(&boxes, g, c, &runs, own + c * runs.count);
        }
        for (int64_t q = 0; q < queries.size; q++) {
            const ARRAY(const int64_t) column = queries.column + q * predicates, run = queries.run + q * predicates;
            uint64_t found = bits[column[0] * WORD + run[0]];
            for (int64_t p = 1; p < plain; p++)
                found &= bits[column[p] * WORD + run[p]];
            double sum = expected[q];
            if (sensitive == 0) {
                for (; found != 0; found &= found - 1)
                    sum += (double)boxes.people[first + lowest_bit(found)];
            } else {
                const ARRAY(const double) held = share + (column[last] - columns) * runs.count + run[last];
                for (; found != 0; found &= found - 1) {
                    const int64_t at = lowest_bit(found);
                    sum += (double)boxes.people[first + at] * held[at * shares];
                }
            }
            expected[q] = sum;
        }
    }
    return 0;
}

/* A heap of the nearest people of one record: distances with the number of people at each, the farthest on top. */
typedef struct {
    ARRAY(double) distance;
    ARRAY(int64_t) people;
    int64_t size, total;
} Nearest;

static inline void swap_entries(Nearest *nearest, int64_t i, int64_t j)
{
    const double distance = nearest->distance[i];
    const int64_t people = nearest->people[i];
    nearest->distance[i] = nearest->distance[j], nearest->people[i] = nearest->people[j];
    nearest->distance[j] = distance, nearest->people[j] = people;
}

static inline void add_nearest(Nearest *nearest, double distance, int64_t people)
{
    int64_t at = nearest->size++;
    nearest->distance[at] = distance, nearest->people[at] = people;
    nearest->total += people;
    for (; at > 0 && nearest->distance[(at - 1) / 2] < nearest->distance[at]; at = (at - 1) / 2)
        swap_entries(nearest, at, (at - 1) / 2);
}

static inline void drop_farthest(Nearest *nearest)
{
    nearest->total -= nearest->people[0];
    swap_entries(nearest, 0, --nearest->size);
    for (int64_t at = 0, child = 1; child < nearest->size; at = child, child = 2 * at + 1) {
        if (child + 1 < nearest->size && nearest->distance[child] < nearest->distance[child + 1])
            child++;
        if (nearest->distance[child] <= nearest->distance[at])
            break;
        swap_entries(nearest, at, child);
    }
}

/* Adds records to the nearest k people of each of some sampled records. `sampled` and `records` are positions [column,
   record], whose distances over all columns are added; people[record] individuals have a record. distance[sample],
   held[sample] are heaps with room for k entries and one more, of size[sample] entries and total[sample] people: no
   fewer entries have k people. */
KERNEL(nearest_people)
{
    IN(double, sampled, ANY, ANY);
    IN(double, records, SIZE(sampled), ANY);
    IN(int64_t, people, COLUMNS(records));
    INTEGER(k);
    REQUIRE(k > 0);
    OUT(double, distance, COLUMNS(sampled), k + 1);
    OUT(int64_t, held, COLUMNS(sampled), k + 1);
    OUT(int64_t, size, COLUMNS(sampled));
    OUT(int64_t, total, COLUMNS(sampled));
    const int64_t columns = SIZE(sampled), samples = COLUMNS(sampled), count = COLUMNS(records);
    for (int64_t s = 0; s < samples; s++) {
        Nearest nearest = {distance + s * (k + 1), held + s * (k + 1), size[s], total[s]};
        for (int64_t r = 0; r < count; r++) {
            const double enough = nearest.total < k ? INFINITY : nearest.distance[0];
            double away = 0.0;
            for (int64_t c = 0; c < columns && away < enough; c++)
                away += fabs(sampled[c * samples + s] - records[c * count + r]);
            if (away >= enough)
                continue;
            add_nearest(&nearest, away, people[r]);
            while (nearest.total - nearest.people[0] >= k)
                drop_farthest(&nearest);
        }
        size[s] = nearest.size, total[s] = nearest.total;
    }
    return 0;
}
