/* The partition search: the cuts of nodes, and the parts between them. */
#include "search/partition/kernels_records.h"

enum { WIDE = 65536 }; /* above every code */

/* The records begin..end of a node and the codes of one column of them, which are low..high. */
typedef struct {
    ARRAY(const uint16_t) codes, code;
    int64_t records, people, begin, end, low, high;
} Column;

/* Finds the cut of a column nearest to the median, ties to the lower one, and the people below it. Codes are counted in
   up to 256 buckets, then those of the bucket with the median. */
static void find_nearest(const Column *column, int64_t *cut, int64_t *left)
{
    const ARRAY(const uint16_t) codes = column->codes, code = column->code;
    const int64_t records = column->records, people = column->people, begin = column->begin, end = column->end;
    const int64_t first = column->low;
    int64_t coarse[256] = {0}, fine[256] = {0};
    int shift = 0;
    while ((column->high - first) >> shift > 255)
        shift++;
    for (int64_t r = begin; r < end; r++)
        coarse[(code[r] - first) >> shift] += weight(codes, records, people, r);
    int64_t total = 0;
    for (int b = 0; b < 256; b++)
        total += coarse[b];
    int64_t bucket = 0, before = 0;
    while (2 * (before + coarse[bucket]) < total)
        before += coarse[bucket++];
    /* the codes around the bucket, and those inside it */
    const int32_t base = (int32_t)(first + (bucket << shift)), beyond = base + (1 << shift);
    int32_t below = -1, above = 2 * WIDE;
    for (int64_t r = begin; r < end; r++) {
        const int32_t own = code[r], under = own < base ? own : -1, over = own >= beyond ? own : 2 * WIDE;
        below = under > below ? under : below;
        above = over < above ? over : above;
    }
    for (int64_t r = begin; r < end; r++) {
        const uint32_t inside = (uint32_t)(code[r] - base);
        if (inside < 1u << shift)
            fine[inside] += weight(codes, records, people, r);
    }
    int32_t at = 0;
    while (2 * (before + fine[at]) < total) {
        if (fine[at] > 0)
            below = base + at;
        before += fine[at++];
    }
    const int64_t middle = base + at, after = before + fine[at];
    do
        at++;
    while (at < 1 << shift && fine[at] == 0);
    if (at < 1 << shift)
        above = base + at;
    const bool lower_is_nearer = total - 2 * before <= 2 * after - total;
    const bool lower = below >= 0 && (lower_is_nearer || above >= WIDE);
    *cut = lower ? (below + middle + 1) / 2 : (middle + above + 1) / 2;
    *left = lower ? before : after;
}

/* Finds per node the cut of one column nearest to the median, ties to the lower one, and the people below it; of
   low..high, which occur, the highest code is above every cut. */
KERNEL(search_nearest)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    IN(int64_t, low, nodes.size);
    IN(int64_t, high, nodes.size);
    OUT(int64_t, cut, nodes.size);
    OUT(int64_t, left, nodes.size);
    for (int64_t node = 0; node < nodes.size; node++) {
        const Column own = {
            codes, column_of(codes, COLUMNS(codes), column[node]), COLUMNS(codes), people,
            nodes.start[node], nodes.stop[node], low[node], high[node],
        };
        find_nearest(&own, &cut[node], &left[node]);
    }
    return 0;
}

/* Counts people by code of a value column in the parts of each node between its cuts, counts[first part + part, code].
   A node with c cuts has c + 1 parts; the parts of all nodes lie one after the other. */
KERNEL(search_part_counts)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    Cuts cuts;
    TAKE(Cuts, &cuts, nodes.size);
    INTEGER(value);
    REQUIRE(value >= 0 && value < SIZE(codes));
    OUT(int64_t, counts, AT_LEAST(cuts.parts), ANY);
    const int64_t records = COLUMNS(codes), values = COLUMNS(counts);
    const ARRAY(const uint16_t) own = column_of(codes, records, value);
    ARRAY(int64_t) of_node = counts;
    for (int64_t node = 0; node < nodes.size; node++) {
        const int64_t begin = nodes.start[node], end = nodes.stop[node];
        const int64_t first = cuts.start[node], last = cuts.start[node + 1];
        const ARRAY(const uint16_t) code = column_of(codes, records, column[node]);
        if (last - first == 1 && people < 0) { /* as nearly always */
            /* the sign of a difference, because a branch would be mispredicted */
            const int64_t under = cuts.cut[first] - 1;
            for (int64_t r = begin; r < end; r++)
                of_node[((under - code[r]) >> 63 & values) + own[r]]++;
        } else
            for (int64_t r = begin; r < end; r++)
                of_node[part_at(cuts.cut, first, last, code[r]) * values + own[r]] += weight(codes, records, people, r);
        of_node += (last - first + 1) * values;
    }
    return 0;
}

/* Counts people in the parts of each node between its cuts. */
KERNEL(search_part_sizes)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    Cuts cuts;
    TAKE(Cuts, &cuts, nodes.size);
    OUT(int64_t, sizes, AT_LEAST(cuts.parts));
    const int64_t records = COLUMNS(codes);
    ARRAY(int64_t) of_node = sizes;
    for (int64_t node = 0; node < nodes.size; node++) {
        const int64_t begin = nodes.start[node], end = nodes.stop[node];
        const int64_t first = cuts.start[node], last = cuts.start[node + 1];
        const ARRAY(const uint16_t) code = column_of(codes, records, column[node]);
        for (int64_t r = begin; r < end; r++)
            of_node[part_at(cuts.cut, first, last, code[r])] += weight(codes, records, people, r);
        of_node += last - first + 1;
    }
    return 0;
}

/* Shell sort of the first `length` numbers. */
static void sort(ARRAY(int64_t) numbers, int64_t length)
{
    for (int64_t gap = length / 2; gap > 0; gap /= 2)
        for (int64_t i = gap; i < length; i++) {
            const int64_t held = numbers[i];
            int64_t j = i;
            for (; j >= gap && numbers[j - gap] > held; j -= gap)
                numbers[j] = numbers[j - gap];
            numbers[j] = held;
        }
}

/* Orders the records begin..end of a node by the parts between cuts; ends[part] is where each part ends among
   them. */
static void order_parts(ARRAY(const uint16_t) code, int64_t begin, int64_t end, ARRAY(const int64_t) cut, int64_t parts,
                        ARRAY(int32_t) order, ARRAY(int64_t) ends)
{
    for (int64_t p = 0; p <= parts; p++)
        ends[p] = 0;
    for (int64_t r = begin; r < end; r++)
        ends[part_at(cut, 0, parts - 1, code[r]) + 1]++;
    for (int64_t p = 0; p < parts; p++)
        ends[p + 1] += ends[p];
    for (int64_t r = begin; r < end; r++)
        order[ends[part_at(cut, 0, parts - 1, code[r])]++] = (int32_t)r;
}

/* Like part_counts, for many codes or parts: the people n of each part, the number of codes that occur in it, and these
   codes with their counts, ascending, one part after the other. The rest is scratch space: counter, all zero, and seen
   have a place for each code, order one for each record of the longest node, ends one more than a node has parts. */
KERNEL(search_part_lists)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    INTEGER(times);
    REQUIRE(times + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    Cuts cuts;
    TAKE(Cuts, &cuts, nodes.size);
    INTEGER(value);
    REQUIRE(value >= 0 && value < SIZE(codes));
    OUT(int64_t, n, cuts.parts);
    OUT(int64_t, length, cuts.parts);
    OUT(int64_t, code, AT_LEAST(nodes.total));
    OUT(int64_t, count, AT_LEAST(nodes.total));
    OUT(int64_t, counter, ANY);
    OUT(int64_t, seen, SIZE(counter));
    OUT(int32_t, order, AT_LEAST(nodes.longest));
    OUT(int64_t, ends, AT_LEAST(cuts.most_parts + 1));
    const int64_t records = COLUMNS(codes);
    const ARRAY(const uint16_t) own = column_of(codes, records, value);
    int64_t base = 0, at = 0;
    for (int64_t node = 0; node < nodes.size; node++) {
        const int64_t parts = cuts.start[node + 1] - cuts.start[node] + 1;
        const ARRAY(const uint16_t) by = column_of(codes, records, column[node]);
        order_parts(by, nodes.start[node], nodes.stop[node], cuts.cut + cuts.start[node], parts, order, ends);
        for (int64_t part = 0, i = 0; part < parts; part++, base++) {
            int64_t found = 0;
            for (; i < ends[part]; i++) {
                const int64_t r = order[i], v = own[r];
                if (counter[v] == 0)
                    seen[found++] = v;
                counter[v] += weight(codes, records, times, r);
                n[base] += weight(codes, records, people, r);
            }
            sort(seen, found);
            for (int64_t e = 0; e < found; e++, at++) {
                code[at] = seen[e];
                count[at] = counter[seen[e]];
                counter[seen[e]] = 0;
            }
            length[base] = found;
        }
    }
    return 0;
}

/* Returns the number of people whose codes of the first columns are unique in their node. keys and alone are scratch
   space, one place per record of the longest node; table too, all zero, four per record. */
KERNEL(search_unique_people)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    INTEGER(columns);
    REQUIRE(columns >= 0 && columns <= SIZE(codes));
    OUT(uint64_t, keys, AT_LEAST(nodes.longest));
    OUT(uint8_t, alone, AT_LEAST(nodes.longest));
    OUT(int32_t, table, AT_LEAST(4 * nodes.longest));
    const int64_t records = COLUMNS(codes);
    int64_t total = 0;
    for (int64_t node = 0; node < nodes.size; node++) {
        const int64_t begin = nodes.start[node], length = nodes.stop[node] - begin;
        if (length == 0)
            continue;
        for (int64_t i = 0; i < length; i++)
            keys[i] = 0;
        for (int64_t j = 0; j < columns; j++) {
            const ARRAY(const uint16_t) code = column_of(codes, records, j) + begin;
            for (int64_t i = 0; i < length; i++) {
                const uint64_t key = (keys[i] ^ code[i]) * 0x9E3779B97F4A7C15u;
                keys[i] = key ^ (key >> 29);
            }
        }
        uint64_t size = 2;
        while (size < 2 * (uint64_t)length)
            size *= 2;
        for (int64_t i = 0; i < length; i++) {
            uint64_t at = keys[i] & (size - 1);
            int64_t known = 0;
            bool same = false;
            while (table[at] > 0 && !same) { /* holds the first record with these codes, counted from 1 */
                known = table[at] - 1;
                same = keys[known] == keys[i];
                for (int64_t j = 0; same && j < columns; j++) {
                    const ARRAY(const uint16_t) code = column_of(codes, records, j) + begin;
                    same = code[known] == code[i];
                }
                if (!same)
                    at = (at + 1) & (size - 1);
            }
            if (!same) {
                table[at] = (int32_t)(i + 1);
                known = i;
                alone[i] = 0;
            }
            const uint8_t before = alone[known];
            /* the number of people, if not more than one */
            alone[known] = (uint8_t)lesser(before + weight(codes, records, people, begin + i), 2);
            total += (alone[known] == 1) - (before == 1);
        }
        for (uint64_t at = 0; at < size; at++)
            table[at] = 0;
    }
    return total;
}
