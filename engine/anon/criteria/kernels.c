/* Skylines: from the counts of each group to the minima over all groups. */
#include "criteria/kernels_counts.h"

enum { STATISTICS = 5 }; /* SS1 to SS5, of every slot */

/* What is known about a slot: columns of `knowledge`, the last one where its l is among all. */
enum { L, K, M, DEPTH };

/* What a row of the memo is about; figures follow. */
enum { VALUE, COUNT, PEOPLE, TIE, FIGURES };

/* What floats alone can say: as in protocol.py. */
enum { CLOSE = -1, UNSAFE, SAFE };

/* The minima of slots, and the integers that each came from. */
typedef struct {
    double *values;
    int64_t *witness;
    int64_t width;
} Minima;

/* Rows of whole numbers: see skyline_fold. */
typedef struct {
    int64_t *rows;
    int64_t size, columns;
} Memo;

/* The values of l that slots have, and of the group at hand for each a count, and what those counts and larger ones
   name. */
typedef struct {
    const int64_t *depth;
    int64_t *edge, *named;
    int64_t size;
} Depths;

/* T of the skyline paper for s > 0; `others` starts with the l largest counts of other values. */
static double target(int64_t kind, int64_t n, int64_t s, int64_t k, int64_t l, const int64_t *others)
{
    if (kind == SINGLE) {
        int64_t left = n - s - k;
        for (int64_t i = 0; i < l; i++)
            left -= others[i];
        return left > 0 ? (double)left / (double)s : 0.0;
    }
    if (kind == SET) {
        double ratio = n - s - k > 0 ? (double)(n - s - k) / (double)s : 0.0;
        for (int64_t i = 0; i < l; i++)
            ratio = ratio > 0 && others[i] < n ? above(ratio * (double)(n - others[i]) / (double)n) : 0.0;
        return ratio;
    }
    if (n - k - 1 <= 0)
        return 0.0;
    const double nobody = (double)s * log1p(-1.0 / (double)(n - k));
    int64_t known = 0;
    for (int64_t i = 0; i < l; i++)
        known += others[i];
    return above(exp(nobody + (double)known * log1p(-1.0 / (double)n)) / -expm1(nobody));
}

/* V of the skyline paper for s > 0. */
static double family(int64_t kind, int64_t n, int64_t s, int64_t m, int64_t k)
{
    if (m == 0)
        return 1.0;
    if (kind == MULTISET)
        return n - k - m > 0 ? above(exp((double)s * log1p((double)-m / (double)(n - k)))) : 0.0;
    double product = 1.0;
    for (int64_t i = 0; i < m; i++) {
        const int64_t numerator = n - s - k - i;
        if (numerator <= 0)
            return 0.0;
        product *= (double)numerator / (double)(n - k - i);
    }
    return above(product);
}

/* The `size` largest counts but one s, which is among them or, if it is smaller than all, the last in its place. */
static inline void without(int64_t s, const int64_t *top, int64_t size, int64_t *others)
{
    int64_t at = 0;
    for (int64_t i = 0; i < size; i++)
        if (at != i || (top[i] != s && i != size - 1))
            others[at++] = top[i];
}

/* SS1 to SS5 of a group alone. */
static void fill_figures(int64_t kind, int64_t n, int64_t s, const int64_t *known, const int64_t *others,
                         double *figures)
{
    const int64_t l = known[L], k = known[K], m = known[M];
    figures[1] = target(kind, n, s, 0, l, others);
    figures[2] = target(kind, n, s, k, l, others);
    figures[3] = family(kind, n, s, m, 0);
    figures[4] = family(kind, n, s, m, k);
    figures[0] = figures[2] * family(kind, n, s, m, k + 1);
}

/* The slots of each value, and what is known about them. */
typedef struct {
    const int64_t *start, *of, *knowledge;
    int64_t columns;
} Slots;

/* The values of a group, each with its count. */
typedef struct {
    int64_t n, low, high;
    const int64_t *value, *count;
} Group;

/* Lowers minima (five per slot) by a group; whether it lowers any. `top` has room for `size` counts, one more than the
   largest l, `others` for as many. */
static bool lower_by(int64_t kind, const Group *group, const Slots *slots, int64_t *top, int64_t size, int64_t *others,
                     double *minima)
{
    double figures[STATISTICS];
    bool lower = false;
    largest_counts(group->count, group->low, group->high, top, size);
    for (int64_t e = group->low; e < group->high; e++) {
        without(group->count[e], top, size, others);
        for (int64_t at = slots->start[group->value[e]]; at < slots->start[group->value[e] + 1]; at++) {
            double *const least = minima + slots->of[at] * STATISTICS;
            const int64_t *const known = slots->knowledge + slots->of[at] * slots->columns;
            fill_figures(kind, group->n, group->count[e], known, others, figures);
            for (int64_t i = 0; i < STATISTICS; i++)
                if (figures[i] < least[i]) {
                    least[i] = figures[i];
                    lower = true;
                }
        }
    }
    return lower;
}

/* Lowers values[owner] (five per slot) by every group. `top` has room for one more count than the largest l,
   `others` for as many. */
LOOP void skyline_lower_minima(int64_t kind, const Array *of_n, const Array *of_start, const Array *of_value,
                               const Array *of_count, const Array *of_owner, const Array *of_slot_start,
                               const Array *of_slot_of, const Array *of_knowledge, const Array *of_values,
                               const Array *of_top, const Array *of_others)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, owner);
    IN(int64_t, slot_start);
    IN(int64_t, slot_of);
    IN(int64_t, knowledge);
    OUT(double, values);
    OUT(int64_t, top);
    OUT(int64_t, others);
    const Slots slots = {slot_start, slot_of, knowledge, COLUMNS(knowledge)};
    for (int64_t g = 0; g < SIZE(n); g++) {
        const Group group = {n[g], start[g], start[g + 1], value, count};
        lower_by(kind, &group, &slots, top, SIZE(top), others, values + owner[g] * COLUMNS(values));
    }
}

/* Lowers the five minima of a slot, and fills in their witnesses. */
static void lower_slot(const double *figures, int64_t slot, const int64_t *integers, const Minima *minima)
{
    for (int64_t i = 0; i < STATISTICS; i++) {
        double *const least = minima->values + slot * STATISTICS + i;
        int64_t *const witness = minima->witness + (slot * STATISTICS + i) * minima->width;
        if (figures[i] < *least || (figures[i] == *least && before(integers, witness, minima->width))) {
            *least = figures[i];
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
static void remember(int64_t n, int64_t s, int64_t slot, const int64_t *known, const Minima *minima, int64_t *same,
                     int64_t *later, int64_t *tie)
{
    const int64_t k = known[K], m = known[M];
    for (int64_t i = 0; i < STATISTICS; i++) {
        const double least = minima->values[slot * STATISTICS + i];
        const int64_t *const witness = minima->witness + (slot * STATISTICS + i) * minima->width;
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
static inline void bound_named(const int64_t *count, int64_t low, int64_t high, const Depths *depths)
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
static inline bool others_within(const int64_t *count, int64_t low, int64_t high, int64_t but, int64_t limit)
{
    int64_t above = 0;
    for (int64_t e = low; e < high; e++)
        above += count[e] > limit;
    return above == (count[but] > limit);
}

/* Whether a group may change anything, by what the row says; `e` is where its value is among the counts. */
static inline bool reached(const int64_t *row, int64_t n, const int64_t *count, int64_t low, int64_t high, int64_t e,
                           const Depths *depths)
{
    const int64_t s = count[e];
    const bool same = row[PEOPLE] == n;
    const int64_t *const limit = row + FIGURES + (same ? 0 : depths->size);
    bool found = false;
    for (int64_t i = 0; i < depths->size; i++)
        found |= n - s - depths->named[i] + greater(s - depths->edge[i], 0) <= limit[i];
    return found || (same && row[TIE] >= 0 && others_within(count, low, high, e, row[TIE]));
}

static void begin(int64_t *row, int64_t columns, int64_t v, int64_t s, int64_t n)
{
    row[VALUE] = v;
    row[COUNT] = s;
    row[PEOPLE] = n;
    for (int64_t i = TIE; i < columns; i++)
        row[i] = -1;
}

/* Whether there was such a group before, if that is remembered; it is from now on. */
static bool seen(const Memo *memo, int64_t v, int64_t n, int64_t s, const int64_t *top, int64_t size)
{
    const int64_t rows = memo->size / 2;
    uint64_t mark = ((uint64_t)v * 31 + (uint64_t)n) * 31 + (uint64_t)s;
    for (int64_t i = 0; i < size; i++)
        mark = mark * 31 + (uint64_t)top[i];
    int64_t *const row = memo->rows + (rows + (((int64_t)mark ^ ((int64_t)mark >> 21)) & (rows - 1))) * memo->columns;
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
static inline int64_t place(const int64_t *value, int64_t low, int64_t high, int64_t v)
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

/* Lowers values[0] (five per slot) by every group, and fills in the witnesses: n, s, the l largest other counts padded
   with zeros to the largest l, and the group.

   `asked` lists the values that have slots, `depth` the different l. With a `memo` of zeros, for single values, most
   groups are seen to change nothing without formulas. Half of its rows say for a value, s, and n or more people when
   they might, the others what groups there were; each row has its place, and is taken over by the next that has the
   same one. `top` has room for one more count than the largest l, `others` for as many, `integers` for a witness,
   `edge`, `named` and `share` for a number per depth; `share` is zero. */
LOOP void skyline_fold(int64_t kind, const Array *of_n, const Array *of_start, const Array *of_value,
                       const Array *of_count, const Array *of_asked, const Array *of_slot_start,
                       const Array *of_slot_of, const Array *of_knowledge, const Array *of_depth, const Array *of_memo,
                       const Array *of_values, const Array *of_witness, int64_t first, const Array *of_top,
                       const Array *of_others, const Array *of_integers, const Array *of_edge, const Array *of_named,
                       const Array *of_share)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, asked);
    IN(int64_t, slot_start);
    IN(int64_t, slot_of);
    IN(int64_t, knowledge);
    IN(int64_t, depth);
    OUT(int64_t, memo);
    OUT(double, values);
    OUT(int64_t, witness);
    OUT(int64_t, top);
    OUT(int64_t, others);
    OUT(int64_t, integers);
    OUT(int64_t, edge);
    OUT(int64_t, named);
    OUT(double, share);
    const Minima minima = {values, witness, SIZE(integers)};
    const Memo notes = {memo, SIZE(memo), COLUMNS(memo)};
    const Depths depths = {depth, edge, named, SIZE(depth)};
    const int64_t groups = SIZE(n), tops = SIZE(top), most = SIZE(others), asks = SIZE(asked);
    const int64_t rows = notes.size / 2, values_known = SIZE(slot_start) - 1;
    const int64_t stride = values_known ? rows / values_known : 0;
    double figures[STATISTICS];
    int64_t *row = notes.rows;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t low = start[g], high = start[g + 1], size = n[g];
        bool exact = rows == 0;
        if (exact)
            largest_counts(count, low, high, top, tops);
        else {
            for (int64_t j = 0; j < depths.size; j++)
                depths.edge[j] = (int64_t)(share[j] * (double)size + 0.5);
            bound_named(count, low, high, &depths);
        }
        const bool few = asks < high - low;
        for (int64_t i = 0; i < (few ? asks : high - low); i++) {
            const int64_t e = few ? place(value, low, high, asked[i]) : low + i;
            if (e < 0 || slot_start[value[e]] == slot_start[value[e] + 1])
                continue;
            const int64_t v = value[e], s = count[e];
            if (rows > 0) {
                row = notes.rows + ((v * stride + s) & (rows - 1)) * notes.columns;
                const bool known = row[VALUE] == v && row[COUNT] == s && row[PEOPLE] <= size;
                if (known && !reached(row, size, count, low, high, e, &depths))
                    continue;
                if (!exact) {
                    exact = true;
                    largest_counts(count, low, high, top, tops);
                    for (int64_t j = 0; j < depths.size; j++) {
                        depths.edge[j] = top[depth[j]];
                        share[j] = (double)depths.edge[j] / (double)size;
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
            for (int64_t at = slot_start[v]; at < slot_start[v + 1]; at++) {
                const int64_t slot = slot_of[at];
                const int64_t *const own = knowledge + slot * COLUMNS(knowledge);
                for (int64_t j = 0; j < most; j++)
                    integers[2 + j] = j < own[L] ? others[j] : 0;
                fill_figures(kind, size, s, own, others, figures);
                lower_slot(figures, slot, integers, &minima);
                if (notes.size > 0) {
                    int64_t *const same = row + FIGURES + own[DEPTH];
                    remember(row[PEOPLE], s, slot, own, &minima, same, same + depths.size, row + TIE);
                }
            }
        }
    }
}

/* The negated ratios of Theorem 2 from the five minima of a slot; infinite where no group has the value (never
   infinity times 0). */
static inline double negated_ratio(const double *minima, int which)
{
    const double target = minima[which];
    return which == 0 || isinf(target) ? target : target * minima[STATISTICS - which];
}

/* ratios[row, slot, 0..2] of rows of minima. */
LOOP void skyline_ratios(const Array *of_minima, const Array *of_ratios)
{
    IN(double, minima);
    OUT(double, ratios);
    const int64_t slots = COLUMNS(ratios);
    for (int64_t i = 0; i < SIZE(minima) * slots; i++)
        for (int which = 0; which < 3; which++)
            ratios[3 * i + which] = negated_ratio(minima + STATISTICS * i, which);
}

/* What floats alone can say of the five minima of a slot whose ratios must be above the least. */
static inline int8_t judge_slot(const double *minima, double least, double tolerance)
{
    const double ratio = fmin(negated_ratio(minima, 0), fmin(negated_ratio(minima, 1), negated_ratio(minima, 2)));
    const double distance = ratio - least;
    if (distance < -tolerance || ratio == 0)
        return UNSAFE;
    return fabs(distance) <= tolerance ? CLOSE : SAFE;
}

/* What they can say of rows of minima: the worst of all slots. */
LOOP void skyline_judge(const Array *of_minima, const Array *of_least, const Array *of_tolerance,
                        const Array *of_verdict)
{
    IN(double, minima);
    IN(double, least);
    IN(double, tolerance);
    OUT(int8_t, verdict);
    const int64_t slots = SIZE(least);
    for (int64_t row = 0; row < SIZE(minima); row++) {
        verdict[row] = SAFE;
        for (int64_t slot = 0; slot < slots && verdict[row] != UNSAFE; slot++) {
            const double *const own = minima + (row * slots + slot) * STATISTICS;
            const int8_t told = judge_slot(own, least[slot], tolerance[slot]);
            verdict[row] = told == SAFE ? verdict[row] : told;
        }
    }
}

/* The same of the minima of a safe release to which the groups of each owner are added, and whether they lower none of
   them. Only slots of values that occur in these groups are looked at: there may be many more. `merged` begins, and
   ends, as the minima of the release; `top` and `others` as for skyline_lower_minima. */
LOOP void skyline_beside(int64_t kind, const Array *of_n, const Array *of_start, const Array *of_value,
                         const Array *of_count, const Array *of_owner, const Array *of_slot_start,
                         const Array *of_slot_of, const Array *of_knowledge, const Array *of_least,
                         const Array *of_tolerance, const Array *of_release, const Array *of_merged,
                         const Array *of_verdict, const Array *of_lowers, const Array *of_top, const Array *of_others)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, owner);
    IN(int64_t, slot_start);
    IN(int64_t, slot_of);
    IN(int64_t, knowledge);
    IN(double, least);
    IN(double, tolerance);
    IN(double, release);
    OUT(double, merged);
    OUT(int8_t, verdict);
    OUT(int8_t, lowers);
    OUT(int64_t, top);
    OUT(int64_t, others);
    const Slots slots = {slot_start, slot_of, knowledge, COLUMNS(knowledge)};
    for (int64_t first = 0, past = 0; first < SIZE(n); first = past) {
        const int64_t own = owner[first];
        for (; past < SIZE(n) && owner[past] == own; past++) {
            const Group group = {n[past], start[past], start[past + 1], value, count};
            if (lower_by(kind, &group, &slots, top, SIZE(top), others, merged))
                lowers[own] = 1;
        }
        for (int64_t e = start[first]; lowers[own] && e < start[past]; e++)
            for (int64_t at = slot_start[value[e]]; at < slot_start[value[e] + 1]; at++) {
                const int64_t slot = slot_of[at];
                const int8_t told = judge_slot(merged + slot * STATISTICS, least[slot], tolerance[slot]);
                if (verdict[own] != UNSAFE && told != SAFE)
                    verdict[own] = told;
            }
        for (int64_t e = start[first]; lowers[own] && e < start[past]; e++)
            for (int64_t at = slot_start[value[e]]; at < slot_start[value[e] + 1]; at++)
                for (int64_t i = slot_of[at] * STATISTICS; i < (slot_of[at] + 1) * STATISTICS; i++)
                    merged[i] = release[i];
    }
}
