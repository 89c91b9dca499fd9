/* Skylines: from the counts of each group to the minima over all groups. */
#include "criteria/kernels_skyline.h"

enum { STATISTICS = 5 }; /* SS1 to SS5, of every slot */

/* What is known about a slot: columns of `knowledge`, the last one where its l is among all. */
enum { L, K, M, DEPTH, COLUMNS_OF_KNOWLEDGE };

/* What a row of the memo is about; figures follow. */
enum { VALUE, COUNT, PEOPLE, TIE, FIGURES };

/* What floats alone can say: as in protocol.py. */
enum { CLOSE = -1, UNSAFE, SAFE };

/* The minima of slots, and the integers that each came from. */
typedef struct {
    ARRAY(double) values;
    ARRAY(int64_t) witness;
    int64_t width;
} Minima;

/* Rows of whole numbers: see skyline_fold. */
typedef struct {
    ARRAY(int64_t) rows;
    int64_t size, columns;
} Memo;

/* The values of l that slots have, and of the group at hand for each a count, and what those counts and larger ones
   name. */
typedef struct {
    ARRAY(const int64_t) depth;
    ARRAY(int64_t) edge, named;
    int64_t size;
} Depths;

/* SS1 to SS5 of a group alone. */
static void fill_figures(int64_t kind, int64_t n, int64_t s, ARRAY(const int64_t) known, ARRAY(const int64_t) others,
                         ARRAY(double) figures)
{
    const int64_t l = known[L], k = known[K], m = known[M];
    RuledOut ruled_out = nothing_ruled_out();
    for (int64_t i = 0; i < l; i++)
        rule_out(kind, n, others[i], &ruled_out);
    const double left = left_of(kind, n, s, &ruled_out);
    figures[1] = target(kind, n, s, left, 0);
    figures[2] = target(kind, n, s, left, k);
    figures[3] = family(kind, n, s, m, 0);
    figures[4] = family(kind, n, s, m, k);
    figures[0] = figures[2] * family(kind, n, s, m, k + 1);
}

/* The slots of each value, of[start[value]:start[value + 1]], and what is known about each slot. */
typedef struct {
    ARRAY(const int64_t) start, of, knowledge;
    int64_t values, size, deepest; /* the largest l */
} Slots;

static inline int64_t take_Slots(Call *call, Slots *slots)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, of, start[SIZE(start) - 1]);
    IN(int64_t, knowledge, ANY, COLUMNS_OF_KNOWLEDGE);
    int64_t deepest = 0;
    for (int64_t slot = 0; slot < SIZE(knowledge); slot++)
        deepest = greater(deepest, knowledge[slot * COLUMNS_OF_KNOWLEDGE + L]);
    const Slots taken = {start, of, knowledge, SIZE(start) - 1, SIZE(knowledge), deepest};
    *slots = taken;
    return 0;
}

static inline ARRAY(const int64_t) known_of(const Slots *slots, int64_t slot)
{
    return slots->knowledge + slot * COLUMNS_OF_KNOWLEDGE;
}

/* Scratch space for the largest counts of a group, one more than the largest l, and for those without one of them. */
typedef struct {
    ARRAY(int64_t) top, others;
    int64_t size;
} Largest;

/* Lowers minima (five per slot) by a group; whether it lowers any. */
static bool lower_by(int64_t kind, const Groups *groups, int64_t g, const Slots *slots, const Largest *largest,
                     ARRAY(double) minima)
{
    const int64_t n = groups->n[g], low = groups->start[g], high = groups->start[g + 1];
    double figures[STATISTICS];
    bool lower = false;
    largest_counts(groups->count, low, high, largest->top, largest->size);
    for (int64_t e = low; e < high; e++) {
        const int64_t v = groups->value[e], s = groups->count[e];
        without(s, largest->top, largest->size, largest->others);
        for (int64_t at = slots->start[v]; at < slots->start[v + 1]; at++) {
            const ARRAY(double) least = minima + slots->of[at] * STATISTICS;
            fill_figures(kind, n, s, known_of(slots, slots->of[at]), largest->others, figures);
            for (int64_t i = 0; i < STATISTICS; i++)
                if (figures[i] < least[i]) {
                    least[i] = figures[i];
                    lower = true;
                }
        }
    }
    return lower;
}

/* Lowers values[owner] (five per slot) by every group. `top` and `others` are scratch. */
KERNEL(skyline_lower_minima)
{
    INTEGER(kind);
    REQUIRE(kind >= 0 && kind < KINDS);
    Groups groups;
    TAKE(Groups, &groups);
    Slots slots;
    TAKE(Slots, &slots);
    IN(int64_t, owner, groups.size);
    OUT(double, values, ANY, slots.size * STATISTICS);
    OUT(int64_t, top, slots.deepest + 1);
    OUT(int64_t, others, slots.deepest);
    const Largest largest = {top, others, SIZE(top)};
    for (int64_t g = 0; g < groups.size; g++)
        lower_by(kind, &groups, g, &slots, &largest, values + owner[g] * COLUMNS(values));
    return 0;
}

/* Lowers the five minima of a slot, and fills in their witnesses. */
static void lower_slot(ARRAY(const double) figures, int64_t slot, ARRAY(const int64_t) integers, const Minima *minima)
{
    for (int64_t i = 0; i < STATISTICS; i++) {
        const int64_t at = slot * STATISTICS + i;
        const ARRAY(int64_t) witness = minima->witness + at * minima->width;
        const double least = minima->values[at];
        if (figures[i] < least || (figures[i] == least && before(integers, witness, minima->width))) {
            minima->values[at] = figures[i];
            for (int64_t j = 0; j < minima->width; j++)
                witness[j] = integers[j];
        }
    }
}

static inline void lift(int64_t *figure, int64_t limit)
{
    if (limit > *figure)
        *figure = limit;
}

/* Notes in the row of n and s, which were folded in, the most people with neither sigma nor the l values with whom
   another group of n and s may change a slot (`same`), and the same for groups of more people (`later`). T rises with
   those people and V with n, to the last bit, so that groups beyond have no lower figures; a tie matters if it comes
   before the witness. Where that has the same n and s, it is a later group of smaller other counts that does: `tie` is
   the largest that its first may be. */
static void remember(int64_t n, int64_t s, int64_t slot, ARRAY(const int64_t) known, const Minima *minima,
                     int64_t *same, int64_t *later, int64_t *tie)
{
    const int64_t k = known[K], m = known[M];
    for (int64_t i = 0; i < STATISTICS; i++) {
        const double least = minima->values[slot * STATISTICS + i];
        const ARRAY(const int64_t) witness = minima->witness + (slot * STATISTICS + i) * minima->width;
        const bool bigger = n < witness[0], wins = bigger || (n == witness[0] && s < witness[1]);
        const bool alike = known[L] > 0 && n == witness[0] && s == witness[1];
        const int64_t aware = i == 1 ? 0 : k;
        const double v = i == 1 || i == 2 ? 1.0 : family(SINGLE, n, s, m, i == 0 ? k + 1 : i == 3 ? 0 : k);
        if (i > 2 || v == 0.0) {
            if (wins && v == least)
                lift(same, n);
            if (alike && v == least)
                lift(tie, witness[2]);
        } else if (least > 0.0) {
            const double most = (double)aware + (double)s * least / v;
            const int64_t limit = (int64_t)(1e18 < most ? 1e18 : most) + 1;
            lift(same, limit);
            lift(later, limit);
        } else {
            if (wins)
                lift(same, aware);
            if (alike)
                lift(tie, witness[2]);
            if (bigger)
                lift(later, aware);
        }
    }
}

/* named[i]: the sum of the depth[i] largest counts is not above this. Whatever the edge, it is no more than so many
   times the edge and all that is above it; with the next largest count as the edge it is just that. */
static inline void bound_named(ARRAY(const int64_t) count, int64_t low, int64_t high, const Depths *depths)
{
    for (int64_t i = 0; i < depths->size; i++) {
        const int64_t edge = depths->edge[i];
        int64_t beyond = 0;
        for (int64_t e = low; e < high; e++)
            beyond += greater(count[e] - edge, 0);
        depths->named[i] = depths->depth[i] * edge + beyond;
    }
}

/* Whether all counts of a group but one are at most this. */
static inline bool others_within(ARRAY(const int64_t) count, int64_t low, int64_t high, int64_t but, int64_t limit)
{
    int64_t above = 0;
    for (int64_t e = low; e < high; e++)
        above += count[e] > limit;
    return above == (count[but] > limit);
}

/* Whether a group may change anything, by what the row says; `e` is where its value is among the counts. */
static inline bool reached(ARRAY(const int64_t) row, int64_t n, ARRAY(const int64_t) count, int64_t low, int64_t high,
                           int64_t e, const Depths *depths)
{
    const int64_t s = count[e];
    const bool same = row[PEOPLE] == n;
    const ARRAY(const int64_t) limit = row + FIGURES + (same ? 0 : depths->size);
    bool found = false;
    for (int64_t i = 0; i < depths->size; i++)
        found |= n - s - depths->named[i] + greater(s - depths->edge[i], 0) <= limit[i];
    return found || (same && row[TIE] >= 0 && others_within(count, low, high, e, row[TIE]));
}

static void begin(ARRAY(int64_t) row, int64_t columns, int64_t v, int64_t s, int64_t n)
{
    row[VALUE] = v;
    row[COUNT] = s;
    row[PEOPLE] = n;
    for (int64_t i = TIE; i < columns; i++)
        row[i] = -1;
}

/* Whether there was such a group before, if that is remembered; it is from now on. */
static bool seen(const Memo *memo, int64_t v, int64_t n, int64_t s, ARRAY(const int64_t) top, int64_t size)
{
    const int64_t rows = memo->size / 2;
    uint64_t mark = ((uint64_t)v * 31 + (uint64_t)n) * 31 + (uint64_t)s;
    for (int64_t i = 0; i < size; i++)
        mark = mark * 31 + (uint64_t)top[i];
    const int64_t place = rows + (((int64_t)mark ^ ((int64_t)mark >> 21)) & (rows - 1));
    const ARRAY(int64_t) row = memo->rows + place * memo->columns;
    bool same = row[VALUE] == v && row[COUNT] == s && row[PEOPLE] == n;
    row[VALUE] = v;
    row[COUNT] = s;
    row[PEOPLE] = n;
    for (int64_t i = 0; i < size; i++) {
        same = same && row[FIGURES + i] == top[i];
        row[FIGURES + i] = top[i];
    }
    return same;
}

/* Where a value is in a group, -1 if it is not; looked for first where it is if no lower one is missing. */
static inline int64_t place(ARRAY(const int64_t) value, int64_t low, int64_t high, int64_t v)
{
    const int64_t guess = lesser(low + v, high - 1);
    for (int64_t e = guess; e >= low; e--)
        if (value[e] == v)
            return e;
    for (int64_t e = guess + 1; e < high; e++)
        if (value[e] == v)
            return e;
    return -1;
}

/* Lowers `values` (five per slot) by every group, and fills in the witnesses: n, s, the l largest other counts padded
   with zeros to the largest l, and the group, which are numbered from `first` on.

   `asked` lists the values that have slots, `depth` the different l, ascending. With a `memo` of zeros, for single
   values, most groups are seen to change nothing without formulas. Half of its rows say for a value, s, and n or more
   people when they might, the others what groups there were; each row has its place, and is taken over by the next that
   has the same one. The rest is scratch space; `share` is zero. */
KERNEL(skyline_fold)
{
    INTEGER(kind);
    REQUIRE(kind >= 0 && kind < KINDS);
    Groups groups;
    TAKE(Groups, &groups);
    INTEGER(first);
    Slots slots;
    TAKE(Slots, &slots);
    IN(int64_t, asked, ANY);
    IN(int64_t, depth, ANY);
    OUT(int64_t, memo, ANY, AT_LEAST(FIGURES + greater(slots.deepest + 1, 2 * SIZE(depth))));
    REQUIRE((SIZE(memo) & (SIZE(memo) - 1)) == 0);
    REQUIRE(SIZE(memo) == 0 || kind == SINGLE);
    OUT(double, values, slots.size * STATISTICS);
    OUT(int64_t, witness, SIZE(values), slots.deepest + 3);
    OUT(int64_t, top, slots.deepest + 1);
    OUT(int64_t, others, slots.deepest);
    OUT(int64_t, integers, slots.deepest + 3);
    OUT(int64_t, edge, SIZE(depth));
    OUT(int64_t, named, SIZE(depth));
    OUT(double, share, SIZE(depth));
    const Minima minima = {values, witness, COLUMNS(witness)};
    const Memo notes = {memo, SIZE(memo), COLUMNS(memo)};
    const Depths depths = {depth, edge, named, SIZE(depth)};
    const ARRAY(const int64_t) value = groups.value, count = groups.count;
    const int64_t tops = SIZE(top), most = slots.deepest, rows = notes.size / 2;
    const int64_t stride = slots.values ? rows / slots.values : 0;
    double figures[STATISTICS];
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t low = groups.start[g], high = groups.start[g + 1], size = groups.n[g];
        bool exact = rows == 0;
        if (exact)
            largest_counts(count, low, high, top, tops);
        else {
            for (int64_t j = 0; j < depths.size; j++)
                edge[j] = (int64_t)(share[j] * (double)size + 0.5);
            bound_named(count, low, high, &depths);
        }
        const bool few = SIZE(asked) < high - low;
        for (int64_t i = 0; i < (few ? SIZE(asked) : high - low); i++) {
            const int64_t e = few ? place(value, low, high, asked[i]) : low + i;
            if (e < 0 || slots.start[value[e]] == slots.start[value[e] + 1])
                continue;
            const int64_t v = value[e], s = count[e];
            const ARRAY(int64_t) row = memo + (rows ? ((v * stride + s) & (rows - 1)) * notes.columns : 0);
            if (rows > 0) {
                const bool known = row[VALUE] == v && row[COUNT] == s && row[PEOPLE] <= size;
                if (known && !reached(row, size, count, low, high, e, &depths))
                    continue;
                if (!exact) {
                    exact = true;
                    largest_counts(count, low, high, top, tops);
                    for (int64_t j = 0; j < depths.size; j++) {
                        edge[j] = top[depth[j]];
                        share[j] = (double)edge[j] / (double)size;
                    }
                    bound_named(count, low, high, &depths);
                    if (known && !reached(row, size, count, low, high, e, &depths))
                        continue;
                }
                if (seen(&notes, v, size, s, top, tops))
                    continue;
                begin(row, notes.columns, v, s, known ? row[PEOPLE] : size);
            }
            without(s, top, tops, others);
            integers[0] = size;
            integers[1] = s;
            integers[most + 2] = first + g;
            for (int64_t at = slots.start[v]; at < slots.start[v + 1]; at++) {
                const int64_t slot = slots.of[at];
                const ARRAY(const int64_t) own = known_of(&slots, slot);
                for (int64_t j = 0; j < most; j++)
                    integers[2 + j] = j < own[L] ? others[j] : 0;
                fill_figures(kind, size, s, own, others, figures);
                lower_slot(figures, slot, integers, &minima);
                if (rows > 0) {
                    const int64_t same = FIGURES + own[DEPTH];
                    remember(row[PEOPLE], s, slot, own, &minima, &row[same], &row[same + depths.size], &row[TIE]);
                }
            }
        }
    }
    return 0;
}

/* The negated ratios of Theorem 2 from the five minima of a slot; infinite where no group has the value (never
   infinity times 0). */
static inline double negated_ratio(ARRAY(const double) minima, int which)
{
    const double target = minima[which];
    return which == 0 || isinf(target) ? target : target * minima[STATISTICS - which];
}

/* ratios[row, slot, 0..2] of rows of minima. */
KERNEL(skyline_ratios)
{
    IN(double, minima, ANY, ANY);
    OUT(double, ratios, SIZE(minima), COLUMNS(minima) / STATISTICS, 3);
    REQUIRE(COLUMNS(minima) % STATISTICS == 0);
    for (int64_t i = 0; i < SIZE(ratios) * COLUMNS(ratios); i++)
        for (int which = 0; which < 3; which++)
            ratios[3 * i + which] = negated_ratio(minima + STATISTICS * i, which);
    return 0;
}

/* What floats alone can say of the five minima of a slot whose ratios must be above the least. */
static inline int8_t judge_slot(ARRAY(const double) minima, double least, double tolerance)
{
    const double ratio = fmin(negated_ratio(minima, 0), fmin(negated_ratio(minima, 1), negated_ratio(minima, 2)));
    const double distance = ratio - least;
    if (distance < -tolerance || ratio == 0)
        return UNSAFE;
    return fabs(distance) <= tolerance ? CLOSE : SAFE;
}

/* What they can say of rows of minima: the worst of all slots. */
KERNEL(skyline_judge)
{
    IN(double, minima, ANY, ANY);
    IN(double, least, COLUMNS(minima) / STATISTICS);
    REQUIRE(COLUMNS(minima) % STATISTICS == 0);
    IN(double, tolerance, SIZE(least));
    OUT(int8_t, verdict, SIZE(minima));
    const int64_t slots = SIZE(least);
    for (int64_t row = 0; row < SIZE(minima); row++) {
        verdict[row] = SAFE;
        for (int64_t slot = 0; slot < slots && verdict[row] != UNSAFE; slot++) {
            const int8_t found = judge_slot(minima + (row * slots + slot) * STATISTICS, least[slot], tolerance[slot]);
            verdict[row] = found == SAFE ? verdict[row] : found;
        }
    }
    return 0;
}

/* The same of the minima of a safe release to which the groups of each owner are added, and whether they lower none of
   them. Only slots of values that occur in these groups are looked at: there may be many more. `merged` begins, and
   ends, as the minima of the release; `top` and `others` are scratch. */
KERNEL(skyline_beside)
{
    INTEGER(kind);
    REQUIRE(kind >= 0 && kind < KINDS);
    Groups groups;
    TAKE(Groups, &groups);
    Slots slots;
    TAKE(Slots, &slots);
    IN(int64_t, owner, groups.size);
    IN(double, least, slots.size);
    IN(double, tolerance, slots.size);
    IN(double, release, slots.size * STATISTICS);
    OUT(double, merged, SIZE(release));
    OUT(int8_t, verdict, ANY);
    OUT(int8_t, lowers, SIZE(verdict));
    OUT(int64_t, top, slots.deepest + 1);
    OUT(int64_t, others, slots.deepest);
    const Largest largest = {top, others, SIZE(top)};
    const ARRAY(const int64_t) start = groups.start, value = groups.value;
    for (int64_t first = 0, past = 0; first < groups.size; first = past) {
        const int64_t own = owner[first];
        for (; past < groups.size && owner[past] == own; past++)
            if (lower_by(kind, &groups, past, &slots, &largest, merged))
                lowers[own] = 1;
        for (int64_t e = start[first]; lowers[own] && e < start[past]; e++)
            for (int64_t at = slots.start[value[e]]; at < slots.start[value[e] + 1]; at++) {
                const int64_t slot = slots.of[at];
                const int8_t found = judge_slot(merged + slot * STATISTICS, least[slot], tolerance[slot]);
                if (verdict[own] != UNSAFE && found != SAFE)
                    verdict[own] = found;
            }
        for (int64_t e = start[first]; lowers[own] && e < start[past]; e++)
            for (int64_t at = slots.start[value[e]]; at < slots.start[value[e] + 1]; at++)
                for (int64_t i = slots.of[at] * STATISTICS; i < (slots.of[at] + 1) * STATISTICS; i++)
                    merged[i] = release[i];
    }
    return 0;
}
