/* The partition search: all cuts of a column that may leave safe groups. */
#include "criteria/kernels_counts.h"
#include "search/partition/kernels_records.h"

enum { MOST_VALUES = 256, FEW = 48 }; /* records that are sorted by insertion */

/* Orders the records of each node by one column's codes: order[start:stop]. A few by insertion, others
   in two rounds of counting by byte; `other` is
   scratch space, a place for each record of the longest node. */
KERNEL(search_by_code)
{
    IN(uint16_t, codes, ANY, ANY);
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    OUT(int32_t, order, AT_LEAST(COLUMNS(codes)));
    OUT(int32_t, other, AT_LEAST(nodes.longest));
    for (int64_t node = 0; node < nodes.size; node++) {
        const ARRAY(const uint16_t) code = column_of(codes, COLUMNS(codes), column[node]);
        const int32_t begin = (int32_t)nodes.start[node], length = (int32_t)(nodes.stop[node] - begin);
        if (length <= FEW) {
            for (int32_t r = begin; r < begin + length; r++) {
                int32_t to = r;
                for (; to > begin && code[order[to - 1]] > code[r]; to--)
                    order[to] = order[to - 1];
                order[to] = r;
            }
            continue;
        }
        int32_t low[257] = {0}, high[257] = {0};
        for (int32_t r = begin; r < begin + length; r++) {
            low[(code[r] & 255) + 1]++;
            high[(code[r] >> 8) + 1]++;
        }
        for (int b = 0; b < 256; b++) {
            low[b + 1] += low[b];
            high[b + 1] += high[b];
        }
        for (int32_t r = begin; r < begin + length; r++)
            other[low[code[r] & 255]++] = r;
        for (int32_t i = 0; i < length; i++)
            order[begin + high[code[other[i]] >> 8]++] = other[i];
    }
    return 0;
}

/* Necessary conditions of a safe group: a number of people, and for each i fewest[i] people outside its largest[i] most
   frequent values. `top` is scratch space, a place for each of the largest values of a demand. */
typedef struct {
    int64_t least, demands, values;
    ARRAY(const int64_t) fewest, largest;
    ARRAY(int64_t) top;
} Demands;

/* Returns the number of people that a group lacks at least before it may be safe. */
static int64_t lacking(const Demands *demanded, ARRAY(const int64_t) counts, int64_t people)
{
    const ARRAY(int64_t) top = demanded->top;
    int64_t most = demanded->least - people;
    for (int64_t i = 0; i < demanded->demands; i++) {
        const int64_t size = demanded->largest[i];
        if (size > 0)
            largest_counts(counts, 0, demanded->values, top, size);
        int64_t left = people;
        for (int64_t t = 0; t < size; t++)
            left -= top[t];
        most = greater(most, demanded->fewest[i] - left);
    }
    return most;
}

/* Records of a node in order of the column that is cut. */
typedef struct {
    ARRAY(const uint16_t) codes, by, own; /* all columns; the one that is cut; the values */
    ARRAY(const int32_t) order;
    int64_t records, people;
} Ordered;

static inline int64_t people_at(const Ordered *node, int64_t i)
{
    return weight(node->codes, node->records, node->people, node->order[i]);
}

/* Returns whether there is a boundary between codes after record i of the order. */
static inline bool bounded(const Ordered *node, int64_t i)
{
    return node->by[node->order[i]] != node->by[node->order[i + 1]];
}

/* Returns the record with which a side of a cut that grows from one end of the order satisfies all conditions, or
   `past`. A condition that holds still holds when records are added, and one more person reduces the number that it
   lacks by at most one. */
static int64_t enough(const Ordered *node, const Demands *demanded, int64_t at, int64_t past, int64_t step)
{
    int64_t counts[MOST_VALUES] = {0}, people = 0, lacks = 0;
    for (; at != past; at += step) {
        const int64_t people_here = people_at(node, at);
        people += people_here;
        lacks -= people_here;
        if (demanded->demands)
            counts[node->own[node->order[at]]] += people_here;
        if (lacks <= 0)
            lacks = lacking(demanded, counts, people);
        if (lacks <= 0)
            return at;
    }
    return past;
}

/* Writes the cuts at the boundaries after records first..last of an order that begins at `start`, nearest to half of
   the people first, ties to the lower; returns their number. */
static int64_t outward(const Ordered *node, int64_t start, int64_t first, int64_t last, int64_t total,
                       ARRAY(uint16_t) cut)
{
    int64_t found = 0, below = 0, high = start, low;
    for (; high < first; high++)
        below += people_at(node, high);
    below += people_at(node, high);
    while (high < last && 2 * below < total)
        below += people_at(node, ++high);
    int64_t above = below; /* people below the cut at `high`, as `below` becomes those below the cut at `low` */
    below -= people_at(node, high);
    low = high - 1;
    for (;;) {
        for (; low >= first && !bounded(node, low); low--)
            below -= people_at(node, low);
        while (high <= last && !bounded(node, high))
            above += people_at(node, ++high);
        if (low < first && high > last)
            return found;
        const bool lower = high > last || (low >= first && total - 2 * below <= 2 * above - total);
        const int64_t at = lower ? low : high;
        cut[found++] = (uint16_t)((node->by[node->order[at]] + node->by[node->order[at + 1]] + 1) / 2);
        if (lower)
            below -= people_at(node, low--);
        else
            above += people_at(node, ++high);
    }
}

/* Writes the cuts of one column per node whose two sides satisfy the necessary conditions of a safe group, from
   room[node] on, nearest to the median first, ties to the lower. `order` is from by_code; with values = 0 (they are 256
   at most) the sides are judged by their people alone. */
KERNEL(search_sweep)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    IN(int32_t, order, AT_LEAST(COLUMNS(codes)));
    INTEGER(value);
    INTEGER(values);
    REQUIRE(values >= 0 && values <= MOST_VALUES && value >= 0 && value < SIZE(codes));
    INTEGER(least);
    IN(int64_t, fewest, ANY);
    IN(int64_t, largest, SIZE(fewest));
    IN(int64_t, room, nodes.size);
    OUT(uint16_t, cut, ANY);
    OUT(int64_t, used, nodes.size);
    OUT(int64_t, top, AT_LEAST(1));
    for (int64_t i = 0; i < SIZE(largest); i++)
        REQUIRE(largest[i] <= SIZE(top));
    for (int64_t at = 0; at < nodes.size; at++)
        REQUIRE(room[at] >= 0 && room[at] + nodes.stop[at] - nodes.start[at] <= SIZE(cut));
    const int64_t records = COLUMNS(codes);
    const Demands demanded = {least, values ? SIZE(fewest) : 0, values, fewest, largest, top};
    Ordered node = {codes, codes, column_of(codes, records, value), order, records, people};
    for (int64_t at = 0; at < nodes.size; at++) {
        node.by = column_of(codes, records, column[at]);
        const int64_t start = nodes.start[at], stop = nodes.stop[at];
        int64_t total = 0;
        for (int64_t r = start; r < stop; r++)
            total += weight(codes, records, people, r);
        const int64_t first = enough(&node, &demanded, start, stop, 1);
        const int64_t last = enough(&node, &demanded, stop - 1, start - 1, -1) - 1;
        used[at] = first > last ? 0 : outward(&node, start, first, last, total, cut + room[at]);
    }
    return 0;
}
