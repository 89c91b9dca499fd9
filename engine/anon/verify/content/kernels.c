/* The recoding as recoding.json has it, applied to the keys of the source's rows. */
#include "core/kernels.h"

enum { TOGETHER = 16 }; /* rows that are followed at a time, so that they wait for the memory together */

/* A node is two numbers, of which the second packs the first child (32 bits), the column plus one (8 bits), and the
   number of children beside the first (24 bits). With one of these, the first number is the lowest key of the second
   child; with more, the place in `low` where the lowest keys of the children but the first begin. A node without a
   column is a group, and its child the number of that. A negative second number is the complement of one that has a
   rest, its last child: in `low` are then, for each child but that, its lowest key and the one after its highest, and
   the rest has the keys in none of them. */
static inline uint32_t child_of(int64_t packed) { return (uint32_t)packed; }
static inline int64_t column_of(int64_t packed) { return ((packed >> 32) & 0xFF) - 1; }
static inline int64_t others_of(int64_t packed) { return packed >> 40; }

/* How many of some keys in order are not above a key. */
static inline int64_t reached(const ARRAY(const int64_t) low, int64_t count, int64_t key)
{
    int64_t first = 0;
    while (first < count) {
        const int64_t middle = (first + count) / 2;
        if (low[middle] <= key)
            first = middle + 1;
        else
            count = middle;
    }
    return first;
}

/* Finds the group of each row by its keys [columns, rows]. */
KERNEL(content_walk)
{
    IN(int64_t, keys, ANY, ANY);
    IN(int64_t, nodes, AT_LEAST(1), 2);
    IN(int64_t, low, ANY);
    OUT(uint32_t, group, COLUMNS(keys));
    const int64_t rows = COLUMNS(keys);
    for (int64_t begin = 0; begin < rows; begin += TOGETHER) {
        const int64_t count = lesser(TOGETHER, rows - begin);
        int64_t node[TOGETHER] = {0};
        for (bool moved = true; moved;) {
            moved = false;
            for (int64_t i = 0; i < count; i++) {
                const int64_t first = nodes[2 * node[i]], written = nodes[2 * node[i] + 1];
                const int64_t packed = written < 0 ? ~written : written;
                const int64_t j = column_of(packed), others = others_of(packed);
                if (j < 0)
                    continue;
                const int64_t key = keys[j * rows + begin + i];
                if (written < 0) {
                    const int64_t ends = reached(low + first, 2 * others, key);
                    node[i] = child_of(packed) + (ends % 2 ? ends / 2 : others);
                } else
                    node[i] = child_of(packed) + (others == 1 ? first <= key : reached(low + first, others, key));
                moved = true;
            }
        }
        for (int64_t i = 0; i < count; i++)
            group[begin + i] = child_of(nodes[2 * node[i] + 1]);
    }
    return 0;
}
