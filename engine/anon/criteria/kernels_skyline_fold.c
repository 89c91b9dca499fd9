/* Skylines: from the counts of many groups to the minima over all of them, with the groups that they came from. */
#include "criteria/kernels_skyline_slots.h"

/* What a row of the memo is about; figures follow. */
enum { VALUE, COUNT, PEOPLE, TIE, FIGURES };

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

/* named[i]: the sum of the depth[i] largest counts is not above this. For every edge, it is at most
   depth[i] times the edge plus all that is above it; with the next largest count as the edge it is just that. */
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

/* What skyline_fold works with. */
typedef struct {
    int64_t kind, first;
    Groups groups;
    Slots slots;
    Minima minima;
    Memo memo;
    Depths depths;
    Largest largest;
    ARRAY(int64_t) integers;
    ARRAY(double) share; /* of the people of the last group that was ranked, for each depth the count at its edge */
} Fold;

/* Bounds what the largest counts of a group name, by the edges of the group that was ranked last. */
static inline void guess(const Fold *fold, int64_t g)
{
    const Groups *const groups = &fold->groups;
    for (int64_t j = 0; j < fold->depths.size; j++)
        fold->depths.edge[j] = (int64_t)(fold->share[j] * (double)groups->n[g] + 0.5);
    bound_named(groups->count, groups->start[g], groups->start[g + 1], &fold->depths);
}

/* Finds the largest counts of a group, and just what they name. */
static inline void rank(const Fold *fold, int64_t g)
{
    const Groups *const groups = &fold->groups;
    const Depths *const depths = &fold->depths;
    const int64_t low = groups->start[g], high = groups->start[g + 1];
    largest_counts(groups->count, low, high, fold->largest.top, fold->largest.size);
    if (fold->memo.size < 2)
        return;
    for (int64_t j = 0; j < depths->size; j++) {
        depths->edge[j] = fold->largest.top[depths->depth[j]];
        fold->share[j] = (double)depths->edge[j] / (double)groups->n[g];
    }
    bound_named(groups->count, low, high, depths);
}

/* Whether a group, which is ranked, was there before, as far as the memo has it; begins the row otherwise. */
static inline bool was_there(const Fold *fold, int64_t g, int64_t e, ARRAY(int64_t) row, bool known)
{
    const int64_t n = fold->groups.n[g], v = fold->groups.value[e], s = fold->groups.count[e];
    if (seen(&fold->memo, v, n, s, fold->largest.top, fold->largest.size))
        return true;
    begin(row, fold->memo.columns, v, s, known ? row[PEOPLE] : n);
    return false;
}

/* Lowers the minima of the slots of a group's value at `e`, and notes in the row when another group may. */
static inline void fold_value(const Fold *fold, int64_t g, int64_t e, ARRAY(int64_t) row)
{
    const ARRAY(int64_t) integers = fold->integers, others = fold->largest.others;
    const Slots *const slots = &fold->slots;
    const int64_t n = fold->groups.n[g], v = fold->groups.value[e], s = fold->groups.count[e], most = slots->deepest;
    double figures[STATISTICS];
    without(s, fold->largest.top, fold->largest.size, others);
    integers[0] = n;
    integers[1] = s;
    integers[most + 2] = fold->first + g;
    for (int64_t at = slots->start[v]; at < slots->start[v + 1]; at++) {
        const int64_t slot = slots->of[at];
        const ARRAY(const int64_t) own = known_of(slots, slot);
        for (int64_t j = 0; j < most; j++)
            integers[2 + j] = j < own[L] ? others[j] : 0;
        fill_figures(fold->kind, n, s, own, others, figures);
        lower_slot(figures, slot, integers, &fold->minima);
        if (fold->memo.size > 1) {
            const int64_t same = FIGURES + own[DEPTH], later = same + fold->depths.size;
            remember(row[PEOPLE], s, slot, own, &fold->minima, &row[same], &row[later], &row[TIE]);
        }
    }
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
    const Depths depths = {depth, edge, named, SIZE(depth)};
    const Fold fold = {
        kind, first, groups, slots, {values, witness, COLUMNS(witness)}, {memo, SIZE(memo), COLUMNS(memo)},
        depths, {top, others, SIZE(top)}, integers, share,
    };
    const ARRAY(const int64_t) value = groups.value, count = groups.count;
    const int64_t rows = SIZE(memo) / 2, stride = slots.values ? rows / slots.values : 0;
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t low = groups.start[g], high = groups.start[g + 1], n = groups.n[g];
        const bool few = SIZE(asked) < high - low;
        bool ranked = rows == 0;
        if (ranked)
            rank(&fold, g);
        else
            guess(&fold, g);
        for (int64_t i = 0; i < (few ? SIZE(asked) : high - low); i++) {
            const int64_t e = few ? place(value, low, high, asked[i]) : low + i;
            if (e < 0 || slots.start[value[e]] == slots.start[value[e] + 1])
                continue;
            const int64_t v = value[e], s = count[e];
            const ARRAY(int64_t) row = memo + (rows ? ((v * stride + s) & (rows - 1)) * COLUMNS(memo) : 0);
            const bool known = rows && row[VALUE] == v && row[COUNT] == s && row[PEOPLE] <= n;
            if (known && !reached(row, n, count, low, high, e, &depths))
                continue;
            if (!ranked) {
                ranked = true;
                rank(&fold, g);
                if (known && !reached(row, n, count, low, high, e, &depths))
                    continue;
            }
            if (rows == 0 || !was_there(&fold, g, e, row, known))
                fold_value(&fold, g, e, row);
        }
    }
    return 0;
}
