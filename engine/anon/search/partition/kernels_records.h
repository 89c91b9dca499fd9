/* Records as the kernels of the partition search read them: columns of 16-bit codes, codes[column, record]: the
   quasi-identifiers, then the other columns, then (where equal rows were counted) the people that a record stands for,
   in two halves from column `people` on; without them `people` is -1 and every record is one person. Where individuals
   have several values, people are counted once, and what is counted by value are occurrences, from another column on. A
   node is a contiguous range of records, except at the top of the tree, where each record's node is given. */
#ifndef ANON_SEARCH_KERNELS_RECORDS_H
#define ANON_SEARCH_KERNELS_RECORDS_H

#include "core/kernels.h"

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

/* Returns the number of cuts in cut[first:last] (ascending) that are at or below the code. */
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

/* Returns the child that a part between cuts belongs to. Of a node that is peeled, the cuts are where each child but the
   last begins and where it ends, without the end of one after which nothing comes: the last child, the rest, has
   everything in between. */
static inline int64_t child_at(int64_t part, int64_t cuts, bool peeled)
{
    if (!peeled)
        return part;
    return part % 2 ? part / 2 : (cuts + 1) / 2;
}

/* Returns the number of children of a node with some cuts. */
static inline int64_t children_of(int64_t cuts, bool peeled) { return (peeled ? (cuts + 1) / 2 : cuts) + 1; }

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

/* Returns whether all numbers are columns of a table that has `columns`. */
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

#endif
