/* Move the records of the partition search: into the parts of their node, or into the order of all nodes. */
#include "search/partition/kernels_records.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* A node whose records are moved into the parts, in order, one column at a time. */
typedef struct {
    ARRAY(uint16_t) codes; /* of the first column, from the first record on */
    int64_t records, columns, length;
    int64_t bounded; /* the number of columns of which the lowest and the highest code in each part is needed, */
    ARRAY(uint16_t) low, high; /* [part, column] */
    ARRAY(uint16_t) aside; /* scratch space: a place for each record, and eight more */
    int64_t run; /* records, a multiple of eight, whose codes of a column stay in the nearest cache */
} Moving;

/* Widens the extent of a part by codes that were moved there, while they are in the nearest cache. */
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

/* For every subset of eight codes, a bit for each, the shuffle that moves those in it to the front. */
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

/* Finds which records of each eight reach the edge, a bit for each. */
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

/* Moves the records of a node into two parts: those below stay, compacted, and the others are set aside until all were
   read. Nothing is written beyond what was read, even where eight codes are written of which only some belong there.
   The codes of a run that were moved are read once more while they are in the nearest cache. */
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

/* The same for any number of parts: part_of is the part of each record, and ends[part] is where each begins. */
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

/* Moves the records of each child of a node together, the children in order, in the place of the node; low and high
   become the lowest and highest codes of each child in the first columns. The rest is scratch space, for the longest
   node: `over` has a place for each eight records and one more, `aside` one for each record and eight more, `part_of`
   one for each record if a node is not cut in two, and `ends` one more than a node has parts. */
KERNEL(search_route)
{
    OUT(uint16_t, codes, ANY, ANY);
    Ranges nodes;
    TAKE(Ranges, &nodes, COLUMNS(codes));
    IN(int64_t, column, nodes.size);
    REQUIRE(are_columns(column, nodes.size, SIZE(codes)));
    Cuts cuts;
    TAKE(Cuts, &cuts, nodes.size);
    IN(bool, peeled, nodes.size);
    int64_t children = 0;
    bool in_two = true; /* every node */
    for (int64_t node = 0; node < nodes.size; node++) {
        const int64_t own = cuts.start[node + 1] - cuts.start[node];
        children += children_of(own, peeled[node]);
        in_two &= own == 1 && !peeled[node];
    }
    INTEGER(run);
    REQUIRE(run > 0 && run % 8 == 0);
    OUT(uint16_t, low, children, ANY);
    OUT(uint16_t, high, SIZE(low), COLUMNS(low));
    REQUIRE(COLUMNS(low) <= SIZE(codes));
    OUT(uint8_t, over, AT_LEAST(nodes.longest / 8 + 1));
    OUT(uint16_t, aside, AT_LEAST(nodes.longest + 8));
    OUT(uint16_t, part_of, AT_LEAST(in_two ? 0 : nodes.longest));
    OUT(int64_t, ends, AT_LEAST(cuts.most_parts + 1));
    const int64_t records = COLUMNS(codes), bounded = COLUMNS(low);
    Shuffle shuffles[256];
    fill_shuffles(shuffles);
    int64_t first = 0;
    for (int64_t node = 0; node < nodes.size; node++) {
        const ARRAY(const int64_t) cut = cuts.cut + cuts.start[node];
        const int64_t own = cuts.start[node + 1] - cuts.start[node], parts = children_of(own, peeled[node]);
        const int64_t begin = nodes.start[node], length = nodes.stop[node] - begin;
        const ARRAY(const uint16_t) by = column_of(codes, records, column[node]) + begin;
        const Moving moving = {
            codes + begin, records, SIZE(codes), length, bounded,
            low + first * bounded, high + first * bounded, aside, run,
        };
        if (parts == 2 && !peeled[node]) { /* as nearly always */
            fill_over(by, length, (uint16_t)cut[0], over);
            split(&moving, over, shuffles);
        } else {
            for (int64_t p = 0; p <= parts; p++)
                ends[p] = 0;
            for (int64_t i = 0; i < length; i++) {
                part_of[i] = (uint16_t)child_at(part_at(cut, 0, own, by[i]), own, peeled[node]);
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

/* Orders records by their nodes. `begin`, all zero and two longer than the number of nodes, becomes the position of the
   first record of each node, and past the last one. */
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
