/* The lattice search: cells and values rolled up to higher levels, and counted. */
#include "loops.h"

enum { BLOCK = 512 }; /* cells at a time, so that their numbers stay in the processor's own memory */

/* Of the cells from `first` up to but not including `last` the sum of what the table has for their codes; `columns` are
   as many as `rows` are, in codes with `cells` each. */
static inline void sum_up(const uint16_t *codes, int64_t cells, const int64_t *rows, int64_t columns,
                          const int64_t *table, const int64_t *offset, int64_t first, int64_t last, int64_t *number)
{
    const int64_t size = last - first;
    for (int64_t i = 0; i < size; i++)
        number[i] = 0;
    for (int64_t j = 0; j < columns; j++) {
        const uint16_t *const own = codes + rows[j] * cells + first;
        const int64_t *const step = table + offset[j];
        for (int64_t i = 0; i < size; i++)
            number[i] += step[own[i]];
    }
}

/* Of each cell the sum of what the table has for its code in each column; `rows` are the columns' places. */
LOOP void lattice_cell_keys(const Array *of_codes, const Array *of_rows, const Array *of_table, const Array *of_offset,
                            const Array *of_key)
{
    IN(uint16_t, codes);
    IN(int64_t, rows);
    IN(int64_t, table);
    IN(int64_t, offset);
    OUT(uint64_t, key);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < SIZE(key); first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, SIZE(key));
        sum_up(codes, COLUMNS(codes), rows, SIZE(rows), table, offset, first, last, number);
        for (int64_t i = 0; i < last - first; i++)
            key[first + i] = (uint64_t)number[i];
    }
}

/* Adds people to the counters of the cell and value of each record, where the counters of a cell's values stand
   together. No values: everybody has the same; no people: one each. */
LOOP void lattice_count_cells(const Array *of_codes, const Array *of_rows, const Array *of_table,
                              const Array *of_offset, const Array *of_value, const Array *of_people,
                              const Array *of_counts)
{
    IN(uint16_t, codes);
    IN(int64_t, rows);
    IN(int64_t, table);
    IN(int64_t, offset);
    IN(uint32_t, value);
    IN(uint32_t, people);
    OUT(uint32_t, counts);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < COLUMNS(codes); first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, COLUMNS(codes));
        sum_up(codes, COLUMNS(codes), rows, SIZE(rows), table, offset, first, last, number);
        if (SIZE(value) > 0)
            for (int64_t i = 0; i < last - first; i++)
                number[i] += value[first + i];
        if (SIZE(people) > 0)
            for (int64_t i = 0; i < last - first; i++)
                counts[number[i]] += people[first + i];
        else
            for (int64_t i = 0; i < last - first; i++)
                counts[number[i]]++;
    }
}

/* The same for cells with several entries each. */
LOOP void lattice_count_entries(const Array *of_codes, const Array *of_rows, const Array *of_table,
                                const Array *of_offset, const Array *of_start, const Array *of_value,
                                const Array *of_people, const Array *of_counts)
{
    IN(uint16_t, codes);
    IN(int64_t, rows);
    IN(int64_t, table);
    IN(int64_t, offset);
    IN(int64_t, start);
    IN(uint32_t, value);
    IN(uint32_t, people);
    OUT(uint32_t, counts);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < COLUMNS(codes); first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, COLUMNS(codes));
        sum_up(codes, COLUMNS(codes), rows, SIZE(rows), table, offset, first, last, number);
        for (int64_t i = 0; i < last - first; i++)
            for (int64_t e = start[first + i]; e < start[first + i + 1]; e++)
                counts[number[i] + value[e]] += people[e];
    }
}

/* Of numbers in order keeps each different one, with the people of all that equal it; how many are left. In place: what
   follows them is of no use any more. */
LOOP int64_t lattice_collapse(const Array *of_words, const Array *of_people)
{
    OUT(uint64_t, words);
    OUT(uint32_t, people);
    const int64_t size = SIZE(words), entries = COLUMNS(words);
    int64_t last = -1;
    for (int64_t i = 0; i < SIZE(people); i++) {
        bool same = last >= 0;
        for (int64_t w = 0; same && w < size; w++)
            same = words[w * entries + i] == words[w * entries + last];
        if (same) {
            people[last] += people[i];
            continue;
        }
        last++;
        people[last] = people[i];
        for (int64_t w = 0; w < size; w++)
            words[w * entries + last] = words[w * entries + i];
    }
    return last + 1;
}
