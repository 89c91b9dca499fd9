/* Skylines: from the counts of groups to the minima of each owner, and what these say. */
#include "criteria/kernels_skyline_slots.h"

/* What floats alone can say: as in protocol.py. */
enum { CLOSE = -1, UNSAFE, SAFE };

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
