/* The top of the tree of the partition search, where each record's node is given: walk records down, and count the
   codes of each node. */
#include "search/partition/kernels_records.h"

/* Like recoding_walk, where no record passes more than one cut: it goes to child[i], or to the next if the code reaches
   the edge, which no code reaches where a record stays. */
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

/* Counts people by code of one column per node, at room[node] + code, where each record's node is given; column -1:
   none. */
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
TOP_CODES(search_top_codes_narrow, uint32_t) /* the same in half the memory, for counts that fit in 32 bits */

/* Counts people by node and code of one column. */
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

/* Widens the extent of each node in some columns. */
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
