/* The partition search: what cuts lose. Places of codes on a column's scale are whole numbers, so that losses are
   exact, and the same wherever they are computed. */
#include "search/partition/kernels_records.h"

enum { MOST_SMALL = 64 }; /* people of a node whose cuts are measured in all columns */

/* Nodes whose cuts are measured: all columns of the records, in the order of the column that is cut. */
typedef struct {
    ARRAY(const uint16_t) codes;
    ARRAY(const int32_t) order;
    ARRAY(const int64_t) scale_start, scale; /* the place of code c of column j is scale[scale_start[j] + c] */
    int64_t records, people, columns, least, small;
} Measured;

/* Adds to wide[i] the widths in all columns of the records from one end of a node's order to record i. */
static void widen(const Measured *all, int64_t start, int64_t length, bool backward, int64_t *wide)
{
    for (int64_t i = 0; i < length; i++)
        wide[i] = 0;
    for (int64_t j = 0; j < all->columns; j++) {
        const ARRAY(const uint16_t) code = column_of(all->codes, all->records, j);
        const ARRAY(const int64_t) place = all->scale + all->scale_start[j];
        int64_t low = 65536, high = -1;
        for (int64_t step = 0; step < length; step++) {
            const int64_t i = backward ? length - 1 - step : step;
            const int64_t own = code[all->order[start + i]];
            low = lesser(low, own);
            high = greater(high, own);
            wide[i] += place[high] - place[low];
        }
    }
}

/* How many people of a node may be dropped, and by how much each of them then loses more; and for each cut which sides
   may be dropped: 1 the lower, 2 the upper. */
typedef struct {
    int64_t most, cost;
    ARRAY(uint8_t) sides;
} Dropping;

/* Writes the cuts of one node along a column, ascending, and how much the two sides lose beyond what the node loses
   (below 0: less); returns their number. Without `dropping` these are the cuts that leave enough people on both sides;
   with it those that leave enough on one and lose less if the other is dropped. */
static int64_t losses(const Measured *all, int64_t start, int64_t stop, int64_t column, const Dropping *dropping,
                      ARRAY(uint16_t) cut, ARRAY(int64_t) loss)
{
    const ARRAY(const uint16_t) by = column_of(all->codes, all->records, column);
    const ARRAY(const int64_t) place = all->scale + all->scale_start[column];
    int64_t total = 0, below = 0, found = 0, left[MOST_SMALL], right[MOST_SMALL];
    for (int64_t i = start; i < stop; i++)
        total += weight(all->codes, all->records, all->people, all->order[i]);
    const bool small = total <= all->small;
    if (small) {
        widen(all, start, stop - start, false, left);
        widen(all, start, stop - start, true, right);
    }
    const int64_t first = place[by[all->order[start]]], last = place[by[all->order[stop - 1]]];
    const int64_t whole = small ? right[0] : last - first;
    for (int64_t i = start; i + 1 < stop; i++) {
        below += weight(all->codes, all->records, all->people, all->order[i]);
        const int64_t lower = by[all->order[i]], upper = by[all->order[i + 1]];
        const int64_t above = total - below;
        const bool many_below = below >= all->least, many_above = above >= all->least;
        if (lower == upper || !(dropping ? many_below || many_above : many_below && many_above))
            continue;
        const int64_t own = below * ((small ? left[i - start] : place[lower] - first) - whole);
        const int64_t other = above * ((small ? right[i + 1 - start] : last - place[upper]) - whole);
        if (dropping) {
            const int64_t no_lower = other + below * dropping->cost, no_upper = own + above * dropping->cost;
            const bool lower_drops = many_above && below <= dropping->most && no_lower < 0;
            const bool upper_drops = many_below && above <= dropping->most && no_upper < 0;
            if (!lower_drops && !upper_drops)
                continue;
            dropping->sides[found] = (uint8_t)(lower_drops | upper_drops << 1);
            loss[found] = lesser(lower_drops ? no_lower : 0, upper_drops ? no_upper : 0);
        } else
            loss[found] = own + other;
        cut[found++] = (uint16_t)((lower + upper + 1) / 2);
    }
    return found;
}

/* Takes everything but the nodes and their columns. */
static int64_t take_Measured(Call *call, Measured *all)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    IN(int32_t, order, AT_LEAST(COLUMNS(codes)));
    IN(int64_t, scale_start, AT_LEAST(1));
    IN(int64_t, scale, AT_LEAST(scale_start[SIZE(scale_start) - 1]));
    REQUIRE(SIZE(scale_start) - 1 <= SIZE(codes));
    INTEGER(least);
    INTEGER(small);
    REQUIRE(least >= 0 && small <= MOST_SMALL);
    const Measured taken = {codes,  order, scale_start, scale, COLUMNS(codes), people, SIZE(scale_start) - 1,
                            least, small};
    *all = taken;
    return 0;
}

/* Finds the cut of each node along its column that loses least, the lowest of several; -1 if none leaves enough people
   on both sides. `order` is from by_code; `cuts` and `losing` are scratch space, a place for each record of the longest
   node. */
KERNEL(search_least_loss)
{
    Measured all;
    TAKE(Measured, &all);
    Ranges nodes;
    TAKE(Ranges, &nodes, all.records);
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, all.columns));
    OUT(uint16_t, cuts, AT_LEAST(nodes.longest));
    OUT(int64_t, losing, AT_LEAST(nodes.longest));
    OUT(int64_t, cut, nodes.size);
    OUT(int64_t, loss, nodes.size);
    for (int64_t at = 0; at < nodes.size; at++) {
        const int64_t found = losses(&all, nodes.start[at], nodes.stop[at], column[at], NULL, cuts, losing);
        int64_t best = 0;
        for (int64_t i = 1; i < found; i++)
            best = losing[i] < losing[best] ? i : best;
        cut[at] = found ? cuts[best] : -1;
        loss[at] = found ? losing[best] : 0;
    }
    return 0;
}

/* Writes all cuts of each node along its column that leave enough people on both sides, ascending, from room[node] on,
   and what they lose. */
KERNEL(search_losses)
{
    Measured all;
    TAKE(Measured, &all);
    Ranges nodes;
    TAKE(Ranges, &nodes, all.records);
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, all.columns));
    IN(int64_t, room, nodes.size);
    OUT(uint16_t, cut, ANY);
    OUT(int64_t, loss, SIZE(cut));
    OUT(int64_t, used, nodes.size);
    for (int64_t at = 0; at < nodes.size; at++) {
        REQUIRE(room[at] >= 0 && room[at] + nodes.stop[at] - nodes.start[at] <= SIZE(cut));
        used[at] = losses(&all, nodes.start[at], nodes.stop[at], column[at], NULL, cut + room[at], loss + room[at]);
    }
    return 0;
}

/* The same for cuts of which one side is dropped, with the sides that may be. */
KERNEL(search_drops)
{
    Measured all;
    TAKE(Measured, &all);
    Ranges nodes;
    TAKE(Ranges, &nodes, all.records);
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, all.columns));
    IN(int64_t, most, nodes.size);
    IN(int64_t, cost, nodes.size);
    IN(int64_t, room, nodes.size);
    OUT(uint16_t, cut, ANY);
    OUT(int64_t, loss, SIZE(cut));
    OUT(uint8_t, sides, SIZE(cut));
    OUT(int64_t, used, nodes.size);
    for (int64_t at = 0; at < nodes.size; at++) {
        REQUIRE(room[at] >= 0 && room[at] + nodes.stop[at] - nodes.start[at] <= SIZE(cut));
        const Dropping dropping = {most[at], cost[at], sides + room[at]};
        used[at] =
            losses(&all, nodes.start[at], nodes.stop[at], column[at], &dropping, cut + room[at], loss + room[at]);
    }
    return 0;
}
