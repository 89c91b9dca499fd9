/* The partition search. Records are columns of 16-bit codes, codes[column, record]: the quasi-identifiers, then the
   other columns, then (where equal rows were counted) the people that a record stands for, in two halves from column
   `people` on; without them `people` is -1 and every record is one person. Where individuals have several values,
   people are counted once, and what is counted by value are occurrences, from another column on. A node is a contiguous
   range of records, except at the top of the tree, where each record's node is given. */
#include "criteria/kernels_counts.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#define WIDE 65536

static inline const uint16_t *column_of(const uint16_t *codes, int64_t records, int64_t column)
{
    return codes + column * records;
}

static inline int64_t weight(const uint16_t *codes, int64_t records, int64_t people, int64_t r)
{
    if (people < 0)
        return 1;
    const uint16_t *const halves = column_of(codes, records, people);
    return (int64_t)halves[r] | (int64_t)halves[records + r] << 16;
}

/* The number of cuts in cut[first:last] (ascending) that are at or below the code. */
static inline int64_t part_at(const int64_t *cut, int64_t first, int64_t last, int64_t code)
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

/* Per node the cut of one column nearest to the median, ties to the lower one, and the people below it; of low..high,
   which occur, the highest code is above every cut. Codes are counted in up to 256 buckets, then those of the bucket
   with the median. */
LOOP void search_nearest(const Array *of_codes, int64_t people, const Array *of_start, const Array *of_stop,
                         const Array *of_column, const Array *of_low, const Array *of_high, const Array *of_cut,
                         const Array *of_left)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int64_t, low);
    IN(int64_t, high);
    OUT(int64_t, cut);
    OUT(int64_t, left);
    const int64_t records = COLUMNS(codes);
    for (int64_t node = 0; node < SIZE(start); node++) {
        int64_t coarse[256] = {0}, fine[256] = {0};
        const uint16_t *const code = column_of(codes, records, column[node]);
        const int64_t begin = start[node], end = stop[node], first = low[node];
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
}

/* People by code of a value column in the parts of each node between its cuts, counts[first part + part, code]. A node
   with c cuts has c + 1 parts; the parts of all nodes lie one after the other. */
LOOP void search_part_counts(const Array *of_codes, int64_t people, const Array *of_start, const Array *of_stop,
                             const Array *of_column, const Array *of_cut_start, const Array *of_cut, int64_t value,
                             const Array *of_counts)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int64_t, cut_start);
    IN(int64_t, cut);
    OUT(int64_t, counts);
    const int64_t records = COLUMNS(codes), values = COLUMNS(counts);
    const uint16_t *const own = column_of(codes, records, value);
    int64_t *of_node = counts;
    for (int64_t node = 0; node < SIZE(start); node++) {
        const int64_t first = cut_start[node], last = cut_start[node + 1];
        const uint16_t *const code = column_of(codes, records, column[node]);
        if (last - first == 1 && people < 0) { /* as nearly always */
            const int64_t under = cut[first] - 1; /* the sign of a difference, because a branch would be guessed wrong */
            for (int64_t r = start[node]; r < stop[node]; r++)
                of_node[((under - code[r]) >> 63 & values) + own[r]]++;
        } else
            for (int64_t r = start[node]; r < stop[node]; r++)
                of_node[part_at(cut, first, last, code[r]) * values + own[r]] += weight(codes, records, people, r);
        of_node += (last - first + 1) * values;
    }
}

/* People in the parts of each node between its cuts. */
LOOP void search_part_sizes(const Array *of_codes, int64_t people, const Array *of_start, const Array *of_stop,
                            const Array *of_column, const Array *of_cut_start, const Array *of_cut,
                            const Array *of_sizes)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int64_t, cut_start);
    IN(int64_t, cut);
    OUT(int64_t, sizes);
    const int64_t records = COLUMNS(codes);
    int64_t *of_node = sizes;
    for (int64_t node = 0; node < SIZE(start); node++) {
        const int64_t first = cut_start[node], last = cut_start[node + 1];
        const uint16_t *const code = column_of(codes, records, column[node]);
        for (int64_t r = start[node]; r < stop[node]; r++)
            of_node[part_at(cut, first, last, code[r])] += weight(codes, records, people, r);
        of_node += last - first + 1;
    }
}

/* Shell sort of the first `length` numbers. */
static void sort(int64_t *numbers, int64_t length)
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
static void order_parts(const uint16_t *code, int64_t begin, int64_t end, const int64_t *cut, int64_t parts,
                        int32_t *order, int64_t *ends)
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
LOOP void search_part_lists(const Array *of_codes, int64_t people, int64_t times, const Array *of_start,
                            const Array *of_stop, const Array *of_column, const Array *of_cut_start,
                            const Array *of_cut, int64_t value, const Array *of_n, const Array *of_length,
                            const Array *of_code, const Array *of_count, const Array *of_counter, const Array *of_seen,
                            const Array *of_order, const Array *of_ends)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int64_t, cut_start);
    IN(int64_t, cut);
    OUT(int64_t, n);
    OUT(int64_t, length);
    OUT(int64_t, code);
    OUT(int64_t, count);
    OUT(int64_t, counter);
    OUT(int64_t, seen);
    OUT(int32_t, order);
    OUT(int64_t, ends);
    const int64_t records = COLUMNS(codes);
    const uint16_t *const own = column_of(codes, records, value);
    int64_t base = 0, at = 0;
    for (int64_t node = 0; node < SIZE(start); node++) {
        const int64_t parts = cut_start[node + 1] - cut_start[node] + 1;
        const uint16_t *const by = column_of(codes, records, column[node]);
        order_parts(by, start[node], stop[node], cut + cut_start[node], parts, order, ends);
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
}

/* The records of each node in order of one column's codes: order[start:stop]. Two rounds of counting by byte; `other`
   is scratch, a place for each record of the longest node. */
LOOP void search_by_code(const Array *of_codes, const Array *of_start, const Array *of_stop, const Array *of_column,
                         const Array *of_order, const Array *of_other)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    OUT(int32_t, order);
    OUT(int32_t, other);
    for (int64_t node = 0; node < SIZE(start); node++) {
        const uint16_t *const code = column_of(codes, COLUMNS(codes), column[node]);
        const int32_t begin = (int32_t)start[node], length = (int32_t)(stop[node] - start[node]);
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
}

/* What no safe group can do without: a number of people, and for each i fewest[i] people outside its largest[i] most
   frequent values. `top` is scratch, a place for each of the largest values of a demand. */
typedef struct {
    int64_t least, demands, values;
    const int64_t *fewest, *largest;
    int64_t *top;
} Demands;

/* How many people more a group needs at least before it may be safe. */
static int64_t lacking(const Demands *demanded, const int64_t *counts, int64_t people)
{
    int64_t most = demanded->least - people, *const top = demanded->top;
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
    const uint16_t *codes, *by, *own; /* all columns; the one that is cut; the values */
    const int32_t *order;
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

/* The record with which a side of a cut that grows from one end of the order has all it needs, or `past`. What it has it
   keeps when records are added, and a person more makes good for one that it lacks at most. */
static int64_t enough(const Ordered *node, const Demands *demanded, int64_t at, int64_t past, int64_t step)
{
    int64_t counts[256] = {0}, people = 0, lacks = 0;
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

/* The cuts at the boundaries after records first..last of an order that begins at `start`, nearest to half of the people
   first, ties to the lower; how many. */
static int64_t outward(const Ordered *node, int64_t start, int64_t first, int64_t last, int64_t total, uint16_t *cut)
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
LOOP void search_sweep(const Array *of_codes, int64_t people, const Array *of_start, const Array *of_stop,
                       const Array *of_column, const Array *of_order, int64_t value, int64_t values, int64_t least,
                       const Array *of_fewest, const Array *of_largest, const Array *of_room, const Array *of_cut,
                       const Array *of_used, const Array *of_top)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int32_t, order);
    IN(int64_t, fewest);
    IN(int64_t, largest);
    IN(int64_t, room);
    OUT(uint16_t, cut);
    OUT(int64_t, used);
    OUT(int64_t, top);
    const int64_t records = COLUMNS(codes);
    const Demands demanded = {least, values ? SIZE(fewest) : 0, values, fewest, largest, top};
    Ordered node = {codes, codes, column_of(codes, records, value), order, records, people};
    for (int64_t at = 0; at < SIZE(start); at++) {
        node.by = column_of(codes, records, column[at]);
        int64_t total = 0;
        for (int64_t r = start[at]; r < stop[at]; r++)
            total += weight(codes, records, people, r);
        const int64_t first = enough(&node, &demanded, start[at], stop[at], 1);
        const int64_t last = enough(&node, &demanded, stop[at] - 1, start[at] - 1, -1) - 1;
        used[at] = first > last ? 0 : outward(&node, start[at], first, last, total, cut + room[at]);
    }
}

/* A node of which the records of each part are brought together, in order, one column at a time. */
typedef struct {
    uint16_t *codes; /* of the first column, from the first record on */
    int64_t records, columns, length;
    int64_t bounded; /* of so many columns the lowest and the highest code in each part is wanted, */
    uint16_t *low, *high; /* [part, column] */
    uint16_t *aside; /* scratch: a place for each record, and eight more */
    int64_t run; /* records, eights of them, whose codes of a column stay in the nearest cache */
} Moving;

/* Widens what a part reaches from and to by codes that were moved there, while they are in the nearest cache. */
static inline void widen(const Moving *node, int64_t part, int64_t column, const uint16_t *code, int64_t length)
{
    if (column >= node->bounded)
        return;
    uint16_t *const low = node->low + part * node->bounded + column;
    uint16_t *const high = node->high + part * node->bounded + column;
    uint16_t lowest = *low, highest = *high;
    for (int64_t i = 0; i < length; i++) {
        lowest = code[i] < lowest ? code[i] : lowest;
        highest = code[i] > highest ? code[i] : highest;
    }
    *low = lowest;
    *high = highest;
}

static inline void copy(uint16_t *to, const uint16_t *from, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        to[i] = from[i];
}

#ifdef __AVX2__
/* For every set of eight codes, a bit for each, the shuffle that brings those in it to the front. */
static void fill_shuffles(__m128i *shuffles)
{
    for (uint64_t set = 0; set < 256; set++) {
        const uint64_t lanes = _pext_u64(0x0706050403020100u, _pdep_u64(set, 0x0101010101010101u) * 255);
        const __m128i lane = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)lanes));
        shuffles[set] = _mm_add_epi16(_mm_mullo_epi16(lane, _mm_set1_epi16(0x0202)), _mm_set1_epi16(0x0100));
    }
}
#endif

/* Which records of each eight reach the edge, a bit for each. */
static void fill_over(const uint16_t *code, int64_t length, uint16_t edge, uint8_t *over)
{
    const int64_t eights = length / 8;
    for (int64_t i = 0; i < eights; i++) {
#ifdef __AVX2__
        const __m128i eight = _mm_loadu_si128((const __m128i *)code + i);
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
static void split(const Moving *node, const uint8_t *over, const void *shuffles)
{
    const int64_t eights = node->length / 8;
    for (int64_t c = 0; c < node->columns; c++) {
        uint16_t *const code = node->codes + c * node->records, *const aside = node->aside;
        int64_t below = 0, above = 0;
        for (int64_t first = 0; first < eights || first == 0; first += node->run / 8) {
            const int64_t last = lesser(first + node->run / 8, eights), seen_below = below, seen_above = above;
#ifdef __AVX2__
            for (int64_t i = first; i < last; i++) {
                const __m128i eight = _mm_loadu_si128((const __m128i *)code + i);
                const uint64_t set = over[i], reached = (uint64_t)__builtin_popcountll(set);
                const __m128i *const front = shuffles;
                _mm_storeu_si128((__m128i *)(code + below), _mm_shuffle_epi8(eight, front[set ^ 255]));
                _mm_storeu_si128((__m128i *)(aside + above), _mm_shuffle_epi8(eight, front[set]));
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
static void split_many(const Moving *node, const uint16_t *part_of, int64_t parts, int64_t *ends)
{
    for (int64_t c = 0; c < node->columns; c++) {
        uint16_t *const code = node->codes + c * node->records;
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
LOOP void search_route(const Array *of_codes, const Array *of_start, const Array *of_stop, const Array *of_column,
                       const Array *of_cut_start, const Array *of_cut, int64_t run, const Array *of_low,
                       const Array *of_high, const Array *of_over, const Array *of_aside, const Array *of_part_of,
                       const Array *of_ends)
{
    OUT(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    IN(int64_t, column);
    IN(int64_t, cut_start);
    IN(int64_t, cut);
    OUT(uint16_t, low);
    OUT(uint16_t, high);
    OUT(uint8_t, over);
    OUT(uint16_t, aside);
    OUT(uint16_t, part_of);
    OUT(int64_t, ends);
    const int64_t records = COLUMNS(codes), bounded = COLUMNS(low);
#ifdef __AVX2__
    __m128i shuffles[256];
    fill_shuffles(shuffles);
#else
    const void *const shuffles = NULL;
#endif
    int64_t first = 0;
    for (int64_t node = 0; node < SIZE(start); node++) {
        const int64_t *const cuts = cut + cut_start[node], parts = cut_start[node + 1] - cut_start[node] + 1;
        const int64_t begin = start[node], length = stop[node] - begin;
        const uint16_t *const by = column_of(codes, records, column[node]) + begin;
        uint16_t *const own_low = low + first * bounded, *const own_high = high + first * bounded;
        const Moving moving = {
            codes + begin, records, SIZE(codes), length, bounded, own_low, own_high, aside, run,
        };
        if (parts == 2) { /* as nearly always */
            fill_over(by, length, (uint16_t)*cuts, over);
            split(&moving, over, shuffles);
        } else {
            for (int64_t p = 0; p <= parts; p++)
                ends[p] = 0;
            for (int64_t i = 0; i < length; i++) {
                part_of[i] = (uint16_t)part_at(cuts, 0, parts - 1, by[i]);
                ends[part_of[i] + 1]++;
            }
            for (int64_t p = 0; p < parts; p++)
                ends[p + 1] += ends[p];
            split_many(&moving, part_of, parts, ends);
        }
        first += parts;
    }
}

/* People who are alone with the codes of the first columns in their node. keys and alone are scratch, one place per
   record of the longest node; table too, all zero, four per record. */
LOOP int64_t search_unique_people(const Array *of_codes, int64_t people, const Array *of_start, const Array *of_stop,
                                  int64_t columns, const Array *of_keys, const Array *of_alone, const Array *of_table)
{
    IN(uint16_t, codes);
    IN(int64_t, start);
    IN(int64_t, stop);
    OUT(uint64_t, keys);
    OUT(uint8_t, alone);
    OUT(int32_t, table);
    const int64_t records = COLUMNS(codes);
    int64_t total = 0;
    for (int64_t node = 0; node < SIZE(start); node++) {
        const int64_t begin = start[node], length = stop[node] - start[node];
        if (length == 0)
            continue;
        for (int64_t i = 0; i < length; i++)
            keys[i] = 0;
        for (int64_t j = 0; j < columns; j++) {
            const uint16_t *const code = column_of(codes, records, j) + begin;
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
                    const uint16_t *const code = column_of(codes, records, j) + begin;
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
#define WALK(name, of_column_type, of_start_type, of_cut_type, of_child_type)                                          \
    LOOP void name(const Array *of_codes, const Array *of_column, const Array *of_cut_start, const Array *of_cut,      \
                   const Array *of_child, const Array *of_node)                                                        \
    {                                                                                                                  \
        IN(uint16_t, codes);                                                                                           \
        IN(of_column_type, column);                                                                                    \
        IN(of_start_type, cut_start);                                                                                  \
        IN(of_cut_type, cut);                                                                                          \
        IN(of_child_type, child);                                                                                      \
        OUT(uint32_t, node);                                                                                           \
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
    }

WALK(search_walk, int64_t, int64_t, int64_t, int64_t)
WALK(search_walk_narrow, int8_t, uint32_t, uint16_t, uint32_t) /* the same for a tree in fewer bytes */

/* As `walk` where no record goes further than over one cut: to child[i], or to the next if the code reaches the edge,
   which is out of reach where a record stays. */
LOOP void search_step(const Array *of_codes, const Array *of_column, const Array *of_edge, const Array *of_child,
                      const Array *of_node)
{
    IN(uint16_t, codes);
    IN(uint8_t, column);
    IN(uint32_t, edge);
    IN(uint32_t, child);
    OUT(uint32_t, node);
    const int64_t records = COLUMNS(codes);
    for (int64_t r = 0; r < records; r++) {
        const uint32_t at = node[r];
        node[r] = child[at] + (column_of(codes, records, column[at])[r] >= edge[at]);
    }
}

/* People by code of one column per node, at room[node] + code, where each record's node is given; column -1: none. */
#define TOP_CODES(name, counter)                                                                                      \
    LOOP void name(const Array *of_codes, int64_t people, const Array *of_node, const Array *of_column,               \
                   const Array *of_room, const Array *of_counts)                                                      \
    {                                                                                                                 \
        IN(uint16_t, codes);                                                                                          \
        IN(uint32_t, node);                                                                                           \
        IN(int64_t, column);                                                                                          \
        IN(int64_t, room);                                                                                            \
        OUT(counter, counts);                                                                                         \
        const int64_t records = COLUMNS(codes);                                                                       \
        for (int64_t r = 0; r < records; r++) {                                                                       \
            const int64_t j = column[node[r]];                                                                        \
            if (j >= 0)                                                                                               \
                counts[room[node[r]] + column_of(codes, records, j)[r]] += (counter)weight(codes, records, people, r); \
        }                                                                                                             \
    }

TOP_CODES(search_top_codes, int64_t)
TOP_CODES(search_top_codes_narrow, uint32_t) /* the same where nobody can be so many, in half the memory */

/* People by code of one column per node. */
LOOP void search_top_values(const Array *of_codes, int64_t people, const Array *of_node, int64_t column,
                            const Array *of_counts)
{
    IN(uint16_t, codes);
    IN(uint32_t, node);
    OUT(int64_t, counts);
    const int64_t records = COLUMNS(codes), values = COLUMNS(counts);
    const uint16_t *const code = column_of(codes, records, column);
    for (int64_t r = 0; r < records; r++)
        counts[node[r] * values + code[r]] += weight(codes, records, people, r);
}

/* Widens what each node reaches from and to in some columns. */
LOOP void search_top_bounds(const Array *of_codes, const Array *of_node, const Array *of_columns, const Array *of_low,
                            const Array *of_high)
{
    IN(uint16_t, codes);
    IN(uint32_t, node);
    IN(int64_t, columns);
    OUT(uint16_t, low);
    OUT(uint16_t, high);
    const int64_t records = COLUMNS(codes), reach = COLUMNS(low);
    for (int64_t k = 0; k < SIZE(columns); k++) {
        const uint16_t *const code = column_of(codes, records, columns[k]);
        for (int64_t r = 0; r < records; r++) {
            const int64_t at = node[r] * reach + columns[k];
            if (code[r] < low[at])
                low[at] = code[r];
            if (code[r] > high[at])
                high[at] = code[r];
        }
    }
}

/* Brings records into the order of their nodes. `begin`, all zero and two longer than there are nodes, becomes the
   place of the first record of each node, and past the last one. */
LOOP void search_scatter(const Array *of_codes, const Array *of_node, const Array *of_begin, const Array *of_order,
                         const Array *of_moved)
{
    IN(uint16_t, codes);
    IN(uint32_t, node);
    OUT(int64_t, begin);
    OUT(int32_t, order);
    OUT(uint16_t, moved);
    const int64_t records = COLUMNS(codes);
    for (int64_t r = 0; r < records; r++)
        begin[node[r] + 2]++;
    for (int64_t i = 2; i < SIZE(begin); i++)
        begin[i] += begin[i - 1];
    for (int64_t r = 0; r < records; r++)
        order[begin[node[r] + 1]++] = (int32_t)r;
    for (int64_t j = 0; j < SIZE(codes); j++) {
        const uint16_t *const from = column_of(codes, records, j);
        uint16_t *const to = moved + j * records;
        for (int64_t i = 0; i < records; i++)
            to[i] = from[order[i]];
    }
}
