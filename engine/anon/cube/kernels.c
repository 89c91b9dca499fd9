/* Count and encode the source's rows. */
#include "core/kernels.h"

/* Increments the counter of every number, counts[number - low]; returns false if one has none. */
#define COUNT_VALUES(name, number)                                                                                     \
    KERNEL(name)                                                                                                       \
    {                                                                                                                  \
        IN(number, numbers, ANY);                                                                                      \
        INTEGER(low);                                                                                                  \
        OUT(uint32_t, counts, ANY);                                                                                    \
        const uint64_t last = (uint64_t)SIZE(counts);                                                                  \
        for (int64_t i = 0; i < SIZE(numbers); i++) {                                                                  \
            const uint64_t at = (uint64_t)numbers[i] - (uint64_t)low;                                                  \
            if (at >= last)                                                                                            \
                return false;                                                                                          \
            counts[at]++;                                                                                              \
        }                                                                                                              \
        return true;                                                                                                   \
    }

COUNT_VALUES(cube_count_values, int64_t)
COUNT_VALUES(cube_count_values_narrow, int32_t)

/* Looks up the code of each number, table[number - low]; returns false if there is none. Numbers beyond an open end
   have the last code. */
#define LOOK_UP(name, number)                                                                                          \
    KERNEL(name)                                                                                                       \
    {                                                                                                                  \
        IN(number, numbers, ANY);                                                                                      \
        INTEGER(low);                                                                                                  \
        IN(int32_t, table, AT_LEAST(1));                                                                               \
        INTEGER(open_ended);                                                                                           \
        OUT(uint16_t, codes, SIZE(numbers));                                                                           \
        const uint64_t last = (uint64_t)SIZE(table) - 1;                                                               \
        for (int64_t i = 0; i < SIZE(numbers); i++) {                                                                  \
            if (numbers[i] < low)                                                                                      \
                return false;                                                                                          \
            uint64_t at = (uint64_t)numbers[i] - (uint64_t)low;                                                        \
            if (at > last && open_ended)                                                                               \
                at = last;                                                                                             \
            if (at > last || table[at] < 0)                                                                            \
                return false;                                                                                          \
            codes[i] = (uint16_t)table[at];                                                                            \
        }                                                                                                              \
        return true;                                                                                                   \
    }

LOOK_UP(cube_look_up, int64_t)
LOOK_UP(cube_look_up_narrow, int32_t)

/* Writes the keys of the records whose hash falls in one of 64 parts; returns their number. `keys` is large enough for
   all records. */
KERNEL(cube_sample)
{
    IN(uint16_t, codes, ANY, ANY);
    OUT(uint64_t, keys, COLUMNS(codes));
    const int64_t records = SIZE(keys);
    for (int64_t r = 0; r < records; r++)
        keys[r] = 0;
    for (int64_t j = 0; j < SIZE(codes); j++) {
        const ARRAY(const uint16_t) column = codes + j * COLUMNS(codes);
        for (int64_t r = 0; r < records; r++) {
            const uint64_t key = (keys[r] ^ column[r]) * 0x9E3779B97F4A7C15u;
            keys[r] = key ^ (key >> 29);
        }
    }
    int64_t found = 0;
    for (int64_t r = 0; r < records; r++)
        if (keys[r] >> 58 == 0)
            keys[found++] = keys[r];
    return found;
}
