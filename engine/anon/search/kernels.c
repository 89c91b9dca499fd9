/* The partition search. Records are columns of 16-bit codes, codes[column, record]: the quasi-identifiers, then the
   other columns, then (where equal rows were counted) the people that a record stands for, in two halves from column
   `people` on; without them `people` is -1 and every record is one person. Where individuals have several values,
   people are counted once, and what is counted by value are occurrences, from another column on. A node is a contiguous
   range of records, except at the top of the tree, where each record's node is given. */
#include "criteria/kernels_counts.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { WIDE = 65536, MOST_VALUES = 256 };

static inline ARRAY(const uint16_t) column_of(ARRAY(const uint16_t) codes, int64_t records, int64_t column)
{
    return codes + column * records;
}

static inline int64_t weight(ARRAY(const uint16_t) codes, int64_t records, int64_t people, int64_t r)
{
    if (people < 0)
        return 1;
    const ARRAY(const uint16_t) halves = column_of(codes, records, people);
    return (int64_t)halves[r] | (int64_t)halves[records + r] << 16;
}

/* The number of cuts in cut[first:last] (ascending) that are at or below the code. */
static inline int64_t part_at(ARRAY(const int64_t) cut, int64_t first, int64_t last, int64_t code)
{
    if (last - first == 1)
        return cut[first] <= code;
    int64_t low = first, high = last;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (cut[middle] <= code)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

/* Nodes that are ranges of records: start[node] up to but not including stop[node]. */
typedef struct {
    ARRAY(const int64_t) start, stop;
    int64_t size, longest, total; /* nodes; records of the longest one, and of all */
} Ranges;

static inline int64_t take_Ranges(Call *call, Ranges *ranges, int64_t records)
{
    IN(int64_t, start, ANY);
    IN(int64_t, stop, SIZE(start));
    int64_t longest = 0, total = 0;
    for (int64_t node = 0; node < SIZE(start); node++) {
        REQUIRE(start[node] >= 0 && start[node] <= stop[node] && stop[node] <= records);
        longest = greater(longest, stop[node] - start[node]);
        total += stop[node] - start[node];
    }
    const Ranges taken = {start, stop, SIZE(start), longest, total};
    *ranges = taken;
    return 0;
}

/* Whether all numbers are columns of a table that has `columns`. */
static inline bool are_columns(ARRAY(const int64_t) numbers, int64_t size, int64_t columns)
{
    bool all = true;
    for (int64_t i = 0; i < size; i++)
        all &= numbers[i] >= 0 && numbers[i] < columns;
    return all;
}

/* The cuts of each node, ascending: cut[start[node]:start[node + 1]]. A node with c cuts has c + 1 parts; the parts of
   all nodes lie one after the other. */
typedef struct {
    ARRAY(const int64_t) start, cut;
    int64_t parts, most_parts; /* of all nodes, and of one */
} Cuts;

static inline int64_t take_Cuts(Call *call, Cuts *cuts, int64_t nodes)
{
    IN(int64_t, start, nodes + 1);
    IN(int64_t, cut, AT_LEAST(start[nodes]));
    int64_t most_parts = 1;
    for (int64_t node = 0; node < nodes; node++) {
        REQUIRE(start[node] >= 0 && start[node] <= start[node + 1]);
        most_parts = greater(most_parts, start[node + 1] - start[node] + 1);
    }
    const Cuts taken = {start, cut, start[nodes] - start[0] + nodes, most_parts};
    *cuts = taken;
    return 0;
}

/* Per node the cut of one column nearest to the median, ties to the lower one, and the people below it; of low..high,
   which occur, the highest code is above every cut. Codes are counted in up to 256 buckets, then those of the bucket
   with the median. */
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
    const int64_t records = COLUMNS(codes);
    for (int64_t node = 0; node < nodes.size; node++) {
        int64_t coarse[256] = {0}, fine[256] = {0};
        const ARRAY(const uint16_t) code = column_of(codes, records, column[node]);
        const int64_t begin = nodes.start[node], end = nodes.stop[node], first = low[node];
        int shift = 0;
        while ((high[node] - first) >> shift > 255)
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
        if (below >= 0 && (lower_is_nearer || above >= WIDE)) {
            cut[node] = (below + middle + 1) / 2;
            left[node] = before;
        } else {
            cut[node] = (middle + above + 1) / 2;
            left[node] = after;
        }
    }
    return 0;
}

/* People by code of a value column in the parts of each node between its cuts, counts[first part + part, code]. A node
   with c cuts has c + 1 parts; the parts of all nodes lie one after the other. */
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
            /* the sign of a difference, because a branch would be guessed wrong */
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

/* People in the parts of each node between its cuts. */
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

/* The records begin..end of a node in order of the parts between cuts; ends[part] is where each part ends among them. */
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

/* As part_counts for many codes or parts: the people n of each part, how many codes occur in it, and these with how
   often they do, ascending, one part after the other. The rest is scratch: counter, all zero, and seen have a place for
   each code, order one for each record of the longest node, ends one more than a node has parts. */
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

/* The records of each node in order of one column's codes: order[start:stop]. Two rounds of counting by byte; `other`
   is scratch, a place for each record of the longest node. */
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

/* What no safe group can do without: a number of people, and for each i fewest[i] people outside its largest[i] most
   frequent values. `top` is scratch, a place for each of the largest values of a demand. */
typedef struct {
    int64_t least, demands, values;
    ARRAY(const int64_t) fewest, largest;
    ARRAY(int64_t) top;
} Demands;

/* How many people more a group needs at least before it may be safe. */
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

/* Whether there is a boundary between codes after record i of the order. */
static inline bool bounded(const Ordered *node, int64_t i)
{
    return node->by[node->order[i]] != node->by[node->order[i + 1]];
}

/* The record with which a side of a cut that grows from one end of the order has all it needs, or `past`. What it has
   it keeps when records are added, and a person more makes good for one that it lacks at most. */
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

/* The cuts at the boundaries after records first..last of an order that begins at `start`, nearest to half of the
   people first, ties to the lower; how many. */
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

/* The cuts of one column per node that leave on both sides what a safe group cannot do without, from room[node] on,
   nearest to the median first, ties to the lower. `order` is from by_code; with values = 0 (they are 256 at most) the
   sides are judged by their people alone. */
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

/* A node of which the records of each part are brought together, in order, one column at a time. */
typedef struct {
    ARRAY(uint16_t) codes; /* of the first column, from the first record on */
    int64_t records, columns, length;
    int64_t bounded; /* of so many columns the lowest and the highest code in each part is wanted, */
    ARRAY(uint16_t) low, high; /* [part, column] */
    ARRAY(uint16_t) aside; /* scratch: a place for each record, and eight more */
    int64_t run; /* records, eights of them, whose codes of a column stay in the nearest cache */
} Moving;

/* Widens what a part reaches from and to by codes that were moved there, while they are in the nearest cache. */
static inline void widen(const Moving *node, int64_t part, int64_t column, ARRAY(const uint16_t) code, int64_t length)
{
    if (column >= node->bounded)
        return;
    const int64_t at = part * node->bounded + column;
    uint16_t lowest = node->low[at], highest = node->high[at];
    for (int64_t i = 0; i < length; i++) {
        lowest = code[i] < lowest ? code[i] : lowest;
        highest = code[i] > highest ? code[i] : highest;
    }
    node->low[at] = lowest;
    node->high[at] = highest;
}

static inline void copy(ARRAY(uint16_t) to, ARRAY(const uint16_t) from, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        to[i] = from[i];
}

#ifdef __AVX2__
typedef __m128i Shuffle;

/* For every set of eight codes, a bit for each, the shuffle that brings those in it to the front. */
static void fill_shuffles(ARRAY(Shuffle) shuffles)
{
    for (uint64_t set = 0; set < 256; set++) {
        const uint64_t lanes = _pext_u64(0x0706050403020100u, _pdep_u64(set, 0x0101010101010101u) * 255);
        const __m128i lane = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)lanes));
        shuffles[set] = _mm_add_epi16(_mm_mullo_epi16(lane, _mm_set1_epi16(0x0202)), _mm_set1_epi16(0x0100));
    }
}
#else
typedef uint8_t Shuffle; /* not used */

static void fill_shuffles(ARRAY(Shuffle) shuffles) { shuffles[0] = 0; }
#endif

/* Which records of each eight reach the edge, a bit for each. */
static void fill_over(ARRAY(const uint16_t) code, int64_t length, uint16_t edge, ARRAY(uint8_t) over)
{
    const int64_t eights = length / 8;
    for (int64_t i = 0; i < eights; i++) {
#ifdef __AVX2__
        const __m128i eight = _mm_loadu_si128((const __m128i *)SPAN(code, 8 * i, 8));
        const __m128i reached = _mm_cmpeq_epi16(_mm_max_epu16(eight, _mm_set1_epi16((int16_t)edge)), eight);
        over[i] = (uint8_t)_mm_movemask_epi8(_mm_packs_epi16(reached, _mm_setzero_si128()));
#else
        uint32_t set = 0;
        for (int lane = 0; lane < 8; lane++)
            set |= (uint32_t)(code[8 * i + lane] >= edge) << lane;
        over[i] = (uint8_t)set;
#endif
    }
    over[eights] = 0;
    for (int64_t i = 8 * eights; i < length; i++)
        over[eights] |= (uint8_t)((code[i] >= edge) << (i % 8));
}

/* Brings the records of a node into two parts: those below stay, closer together, and the others are set aside until
   all were seen. Nothing is written beyond what was read, also where eight codes are written of which only some belong
   there. What was moved of a run is looked at once more while it is in the nearest cache. */
static void split(const Moving *node, ARRAY(const uint8_t) over, ARRAY(const Shuffle) shuffles)
{
    const int64_t eights = node->length / 8;
    for (int64_t c = 0; c < node->columns; c++) {
        const ARRAY(uint16_t) code = node->codes + c * node->records, aside = node->aside;
        int64_t below = 0, above = 0;
        for (int64_t first = 0; first < eights || first == 0; first += node->run / 8) {
            const int64_t last = lesser(first + node->run / 8, eights), seen_below = below, seen_above = above;
#ifdef __AVX2__
            for (int64_t i = first; i < last; i++) {
                const __m128i eight = _mm_loadu_si128((const __m128i *)SPAN(code, 8 * i, 8));
                const uint64_t set = over[i], reached = (uint64_t)__builtin_popcountll(set);
                _mm_storeu_si128((__m128i *)SPAN(code, below, 8), _mm_shuffle_epi8(eight, shuffles[set ^ 255]));
                _mm_storeu_si128((__m128i *)SPAN(aside, above, 8), _mm_shuffle_epi8(eight, shuffles[set]));
                below += (int64_t)(8 - reached);
                above += (int64_t)reached;
            }
            const int64_t from = 8 * last;
#else
            (void)shuffles;
            const int64_t from = 8 * first;
#endif
            const int64_t end = last == eights ? node->length : 8 * last;
            for (int64_t i = from; i < end; i++) {
                const int64_t reached = over[i / 8] >> (i % 8) & 1;
                const uint16_t own = code[i];
                code[below] = own;
                aside[above] = own;
                below += 1 - reached;
                above += reached;
            }
            widen(node, 0, c, code + seen_below, below - seen_below);
            widen(node, 1, c, aside + seen_above, above - seen_above);
        }
        copy(code + below, aside, above);
    }
}

/* The same for any number of parts: part_of says which each record belongs to, and ends[part] where each begins. */
static void split_many(const Moving *node, ARRAY(const uint16_t) part_of, int64_t parts, ARRAY(int64_t) ends)
{
    for (int64_t c = 0; c < node->columns; c++) {
        const ARRAY(uint16_t) code = node->codes + c * node->records;
        for (int64_t i = 0; i < node->length; i++)
            node->aside[ends[part_of[i]]++] = code[i];
        copy(code, node->aside, node->length);
        for (int64_t p = parts; p > 0; p--)
            ends[p] = ends[p - 1];
        ends[0] = 0;
        for (int64_t p = 0; p < parts; p++)
            widen(node, p, c, code + ends[p], ends[p + 1] - ends[p]);
    }
}

/* Brings the records of each part of a node together, the parts in order, in the place of the node; low and high become
   what each part reaches from and to in the first columns. The rest is scratch, for the longest node: `over` has a
   place for each eight records and one more, `aside` one for each record and eight more, `part_of` one for each record
   if a node has more than two parts, and `ends` one more than a node has parts. */
KERNEL(search_route)
{
    OUT(uint16_t, codes, ANY, ANY);
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    Cuts cuts;
    TAKE(Cuts, &cuts, nodes.size);
    INTEGER(run);
    REQUIRE(run > 0 && run % 8 == 0);
    OUT(uint16_t, low, cuts.parts, ANY);
    OUT(uint16_t, high, cuts.parts, COLUMNS(low));
    REQUIRE(COLUMNS(low) <= SIZE(codes));
    OUT(uint8_t, over, AT_LEAST(nodes.longest / 8 + 1));
    OUT(uint16_t, aside, AT_LEAST(nodes.longest + 8));
    OUT(uint16_t, part_of, AT_LEAST(cuts.most_parts > 2 ? nodes.longest : 0));
    OUT(int64_t, ends, AT_LEAST(cuts.most_parts + 1));
    const int64_t records = COLUMNS(codes), bounded = COLUMNS(low);
    Shuffle shuffles[256];
    fill_shuffles(shuffles);
    int64_t first = 0;
    for (int64_t node = 0; node < nodes.size; node++) {
        const ARRAY(const int64_t) cut = cuts.cut + cuts.start[node];
        const int64_t parts = cuts.start[node + 1] - cuts.start[node] + 1;
        const int64_t begin = nodes.start[node], length = nodes.stop[node] - begin;
        const ARRAY(const uint16_t) by = column_of(codes, records, column[node]) + begin;
        const Moving moving = {
            codes + begin, records, SIZE(codes), length, bounded,
            low + first * bounded, high + first * bounded, aside, run,
        };
        if (parts == 2) { /* as nearly always */
            fill_over(by, length, (uint16_t)cut[0], over);
            split(&moving, over, shuffles);
        } else {
            for (int64_t p = 0; p <= parts; p++)
                ends[p] = 0;
            for (int64_t i = 0; i < length; i++) {
                part_of[i] = (uint16_t)part_at(cut, 0, parts - 1, by[i]);
                ends[part_of[i] + 1]++;
            }
            for (int64_t p = 0; p < parts; p++)
                ends[p + 1] += ends[p];
            split_many(&moving, part_of, parts, ends);
        }
        first += parts;
    }
    return 0;
}

/* People who are alone with the codes of the first columns in their node. keys and alone are scratch, one place per
   record of the longest node; table too, all zero, four per record. */
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
            /* how many, if not more than one */
            alone[known] = (uint8_t)lesser(before + weight(codes, records, people, begin + i), 2);
            total += (alone[known] == 1) - (before == 1);
        }
        for (uint64_t at = 0; at < size; at++)
            table[at] = 0;
    }
    return total;
}

/* Walks every record down a tree of cuts, from the node it has come to. Node i with c cuts has c + 1 children from
   child[i] on; a leaf has column -1, and its child is what the records that end there are given. */
#define WALK(name, column_type, start_type, cut_type, child_type)                                                      \
    KERNEL(name)                                                                                                       \
    {                                                                                                                  \
        IN(uint16_t, codes, ANY, ANY);                                                                                 \
        IN(column_type, column, ANY);                                                                                  \
        IN(start_type, cut_start, SIZE(column) + 1);                                                                   \
        IN(cut_type, cut, AT_LEAST(cut_start[SIZE(column)]));                                                          \
        IN(child_type, child, SIZE(column));                                                                           \
        OUT(uint32_t, node, COLUMNS(codes));                                                                           \
        const int64_t records = COLUMNS(codes);                                                                        \
        for (int64_t r = 0; r < records; r++) {                                                                        \
            int64_t at = node[r];                                                                                      \
            while (column[at] >= 0) {                                                                                  \
                const int64_t code = column_of(codes, records, column[at])[r];                                         \
                int64_t low = cut_start[at], high = cut_start[at + 1];                                                 \
                const int64_t first = low;                                                                             \
                if (high - low == 1)                                                                                   \
                    low += cut[low] <= code;                                                                           \
                else                                                                                                   \
                    while (low < high) {                                                                               \
                        const int64_t middle = (low + high) / 2;                                                       \
                        if (cut[middle] <= code)                                                                       \
                            low = middle + 1;                                                                          \
                        else                                                                                           \
                            high = middle;                                                                             \
                    }                                                                                                  \
                at = (int64_t)child[at] + low - first;                                                                 \
            }                                                                                                          \
            node[r] = (uint32_t)child[at];                                                                             \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

WALK(search_walk, int64_t, int64_t, int64_t, int64_t)
WALK(search_walk_narrow, int8_t, uint32_t, uint16_t, uint32_t) /* the same for a tree in fewer bytes */

/* As `walk` where no record goes further than over one cut: to child[i], or to the next if the code reaches the edge,
   which is out of reach where a record stays. */
KERNEL(search_step)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(uint8_t, column, ANY);
    IN(uint32_t, edge, SIZE(column));
    IN(uint32_t, child, SIZE(column));
    OUT(uint32_t, node, COLUMNS(codes));
    const int64_t records = COLUMNS(codes);
    for (int64_t r = 0; r < records; r++) {
        const uint32_t at = node[r];
        node[r] = child[at] + (column_of(codes, records, column[at])[r] >= edge[at]);
    }
    return 0;
}

/* People by code of one column per node, at room[node] + code, where each record's node is given; column -1: none. */
#define TOP_CODES(name, counter)                                                                                       \
    KERNEL(name)                                                                                                       \
    {                                                                                                                  \
        IN(uint16_t, codes, ANY, ANY);                                                                                 \
        INTEGER(people);                                                                                               \
        REQUIRE(people + 2 <= SIZE(codes));                                                                            \
        IN(uint32_t, node, COLUMNS(codes));                                                                            \
        IN(int64_t, column, ANY);                                                                                      \
        IN(int64_t, room, SIZE(column));                                                                               \
        OUT(counter, counts, ANY);                                                                                     \
        const int64_t records = COLUMNS(codes);                                                                        \
        for (int64_t r = 0; r < records; r++) {                                                                        \
            const int64_t j = column[node[r]];                                                                         \
            if (j >= 0)                                                                                                \
                counts[room[node[r]] + column_of(codes, records, j)[r]] += (counter)weight(codes, records, people, r); \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

TOP_CODES(search_top_codes, int64_t)
TOP_CODES(search_top_codes_narrow, uint32_t) /* the same where nobody can be so many, in half the memory */

/* People by code of one column per node. */
KERNEL(search_top_values)
{
    IN(uint16_t, codes, ANY, ANY);
    INTEGER(people);
    REQUIRE(people + 2 <= SIZE(codes));
    IN(uint32_t, node, COLUMNS(codes));
    INTEGER(column);
    REQUIRE(column >= 0 && column < SIZE(codes));
    OUT(int64_t, counts, ANY, ANY);
    const int64_t records = COLUMNS(codes), values = COLUMNS(counts);
    const ARRAY(const uint16_t) code = column_of(codes, records, column);
    for (int64_t r = 0; r < records; r++)
        counts[node[r] * values + code[r]] += weight(codes, records, people, r);
    return 0;
}

/* Widens what each node reaches from and to in some columns. */
KERNEL(search_top_bounds)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(uint32_t, node, COLUMNS(codes));
    IN(int64_t, columns, ANY);
    OUT(uint16_t, low, ANY, ANY);
    OUT(uint16_t, high, SIZE(low), COLUMNS(low));
    REQUIRE(are_columns(columns, SIZE(columns), lesser(SIZE(codes), COLUMNS(low))));
    const int64_t records = COLUMNS(codes), reach = COLUMNS(low);
    for (int64_t k = 0; k < SIZE(columns); k++) {
        const ARRAY(const uint16_t) code = column_of(codes, records, columns[k]);
        for (int64_t r = 0; r < records; r++) {
            const int64_t at = node[r] * reach + columns[k];
            if (code[r] < low[at])
                low[at] = code[r];
            if (code[r] > high[at])
                high[at] = code[r];
        }
    }
    return 0;
}

/* Brings records into the order of their nodes. `begin`, all zero and two longer than there are nodes, becomes the
   place of the first record of each node, and past the last one. */
KERNEL(search_scatter)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(uint32_t, node, COLUMNS(codes));
    OUT(int64_t, begin, AT_LEAST(2));
    OUT(int32_t, order, COLUMNS(codes));
    OUT(uint16_t, moved, SIZE(codes), COLUMNS(codes));
    const int64_t records = COLUMNS(codes);
    for (int64_t r = 0; r < records; r++)
        begin[node[r] + 2]++;
    for (int64_t i = 2; i < SIZE(begin); i++)
        begin[i] += begin[i - 1];
    for (int64_t r = 0; r < records; r++)
        order[begin[node[r] + 1]++] = (int32_t)r;
    for (int64_t j = 0; j < SIZE(codes); j++) {
        const ARRAY(const uint16_t) from = column_of(codes, records, j);
        const ARRAY(uint16_t) to = moved + j * records;
        for (int64_t i = 0; i < records; i++)
            to[i] = from[order[i]];
    }
    return 0;
}
