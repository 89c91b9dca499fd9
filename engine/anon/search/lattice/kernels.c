/* The lattice search: roll cells and values up to higher levels, and count them. */
#include "core/kernels.h"

enum { BLOCK = 512 }; /* cells at a time, so that their numbers stay in the processor's cache */

/* Cells and the steps that roll them up: codes[row, cell]; table[offset[j] + code] is the addend of column j, which is
   rows[j] of the codes, to the number of a cell. */
typedef struct {
    ARRAY(const uint16_t) codes;
    int64_t cells;
    ARRAY(const int64_t) rows, table, offset;
    int64_t columns;
} Cells;

static inline int64_t take_Cells(Call *call, Cells *cells)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(int64_t, rows, ANY);
    IN(int64_t, table, ANY);
    IN(int64_t, offset, SIZE(rows));
    const Cells taken = {codes, COLUMNS(codes), rows, table, offset, SIZE(rows)};
    *cells = taken;
    return 0;
}

/* Fills `number` with the numbers of the cells from `first` up to but not including `last`. */
static inline void sum_up(const Cells *cells, int64_t first, int64_t last, ARRAY(int64_t) number)
{
    const int64_t size = last - first;
    for (int64_t i = 0; i < size; i++)
        number[i] = 0;
    for (int64_t j = 0; j < cells->columns; j++) {
        const ARRAY(const uint16_t) own = cells->codes + cells->rows[j] * cells->cells + first;
        const ARRAY(const int64_t) step = cells->table + cells->offset[j];
        for (int64_t i = 0; i < size; i++)
            number[i] += step[own[i]];
    }
}

/* Fills `key` with the number of each cell. */
KERNEL(lattice_cell_keys)
{
    Cells cells;
    TAKE(Cells, &cells);
    OUT(uint64_t, key, cells.cells);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < cells.cells; first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, cells.cells);
        sum_up(&cells, first, last, number);
        for (int64_t i = 0; i < last - first; i++)
            key[first + i] = (uint64_t)number[i];
    }
    return 0;
}

/* Adds people to the counters of the cell and value of each record, where the counters of a cell's values are adjacent.
   Without values everyone has the same one; without people each record is one person. */
KERNEL(lattice_count_cells)
{
    Cells cells;
    TAKE(Cells, &cells);
    IN(uint32_t, value, ANY);
    REQUIRE(SIZE(value) == 0 || SIZE(value) == cells.cells);
    IN(uint32_t, people, ANY);
    REQUIRE(SIZE(people) == 0 || SIZE(people) == cells.cells);
    OUT(uint32_t, counts, ANY);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < cells.cells; first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, cells.cells);
        sum_up(&cells, first, last, number);
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
    return 0;
}

/* The same for cells with several entries each. */
KERNEL(lattice_count_entries)
{
    Cells cells;
    TAKE(Cells, &cells);
    IN(int64_t, start, cells.cells + 1);
    IN(uint32_t, value, AT_LEAST(start[cells.cells]));
    IN(uint32_t, people, SIZE(value));
    OUT(uint32_t, counts, ANY);
    int64_t number[BLOCK];
    for (int64_t first = 0; first < cells.cells; first += BLOCK) {
        const int64_t last = lesser(first + BLOCK, cells.cells);
        sum_up(&cells, first, last, number);
        for (int64_t i = 0; i < last - first; i++)
            for (int64_t e = start[first + i]; e < start[first + i + 1]; e++)
                counts[number[i] + value[e]] += people[e];
    }
    return 0;
}

/* Keeps each distinct one of numbers in order, with the people of all that equal it; returns their number. In place:
   the elements after them are meaningless. */
KERNEL(lattice_collapse)
{
    OUT(uint64_t, words, ANY, ANY);
    OUT(uint32_t, people, COLUMNS(words));
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
