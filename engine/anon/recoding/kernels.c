/* Walk records down a tree of cuts. */
#include "search/partition/kernels_records.h"

/* Walks every record down a tree of cuts, from its current node. Node i with c cuts has c + 1 children from child[i] on,
   or fewer if it is peeled; a leaf has column -1, and its child is the number that the records that end there get. */
#define WALK(name, column_type, start_type, cut_type, child_type)                                                      \
    KERNEL(name)                                                                                                       \
    {                                                                                                                  \
        IN(uint16_t, codes, ANY, ANY);                                                                                 \
        IN(column_type, column, ANY);                                                                                  \
        IN(start_type, cut_start, SIZE(column) + 1);                                                                   \
        IN(cut_type, cut, AT_LEAST(cut_start[SIZE(column)]));                                                          \
        IN(child_type, child, SIZE(column));                                                                           \
        IN(bool, peeled, SIZE(column));                                                                                \
        OUT(uint32_t, node, COLUMNS(codes));                                                                           \
        const int64_t records = COLUMNS(codes);                                                                        \
        for (int64_t r = 0; r < records; r++) {                                                                        \
            int64_t at = node[r];                                                                                      \
            while (column[at] >= 0) {                                                                                  \
                const int64_t code = column_of(codes, records, column[at])[r];                                         \
                int64_t low = cut_start[at], high = cut_start[at + 1];                                                 \
                const int64_t first = low, cuts = high - low;                                                          \
                if (cuts == 1)                                                                                         \
                    low += cut[low] <= code;                                                                           \
                else                                                                                                   \
                    while (low < high) {                                                                               \
                        const int64_t middle = (low + high) / 2;                                                       \
                        if (cut[middle] <= code)                                                                       \
                            low = middle + 1;                                                                          \
                        else                                                                                           \
                            high = middle;                                                                             \
                    }                                                                                                  \
                at = (int64_t)child[at] + child_at(low - first, cuts, peeled[at]);                                     \
            }                                                                                                          \
            node[r] = (uint32_t)child[at];                                                                             \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

WALK(recoding_walk, int64_t, int64_t, int64_t, int64_t)
WALK(recoding_walk_narrow, int8_t, uint32_t, uint16_t, uint32_t) /* the same for a tree in fewer bytes */
