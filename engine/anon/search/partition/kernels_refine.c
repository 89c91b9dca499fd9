/* Regrouping the individuals of small parts of the tree (refine.py): pairs of groups are pooled and divided anew where
   that loses less. Individuals are numbered in the order of all their codes; the members of a group are ascending. */
#include "search/partition/kernels_records.h"

/* Individuals, their groups and the scales of the columns. */
typedef struct {
    ARRAY(const uint16_t) codes; /* [columns, individuals] */
    ARRAY(const int32_t) value;
    ARRAY(const int64_t) scale_start, scale, start;
    ARRAY(const int32_t) member;
    int64_t people, columns, groups, values;
} Pool;

/* Scratch space with a place for each member of the largest pool, and counters of the values. */
typedef struct {
    ARRAY(int64_t) key, other, left, right, count;
    int64_t room;
} Scratch;

static int64_t take_Pool(Call *call, Pool *pool)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(int32_t, value, COLUMNS(codes));
    INTEGER(values);
    IN(int64_t, scale_start, SIZE(codes) + 1);
    IN(int64_t, scale, AT_LEAST(scale_start[SIZE(scale_start) - 1]));
    IN(int64_t, start, AT_LEAST(1));
    IN(int32_t, member, COLUMNS(codes));
    for (int64_t i = 0; i < COLUMNS(codes); i++)
        REQUIRE(member[i] >= 0 && member[i] < COLUMNS(codes) && value[i] >= 0 && value[i] < values);
    REQUIRE(scale_start[0] >= 0);
    for (int64_t j = 0; j < SIZE(codes); j++) {
        REQUIRE(scale_start[j] <= scale_start[j + 1]);
        const ARRAY(const uint16_t) code = column_of(codes, COLUMNS(codes), j);
        uint16_t highest = 0;
        for (int64_t i = 0; i < COLUMNS(codes); i++)
            highest = code[i] > highest ? code[i] : highest;
        REQUIRE(COLUMNS(codes) == 0 || highest < scale_start[j + 1] - scale_start[j]);
    }
    REQUIRE(start[0] == 0 && start[SIZE(start) - 1] == COLUMNS(codes));
    for (int64_t g = 0; g + 1 < SIZE(start); g++)
        REQUIRE(start[g] < start[g + 1]);
    const Pool taken = {codes,  value, scale_start, scale, start, member, COLUMNS(codes), SIZE(codes), SIZE(start) - 1,
                        values};
    *pool = taken;
    return 0;
}

static int64_t take_Scratch(Call *call, Scratch *scratch, int64_t values)
{
    OUT(int64_t, key, ANY);
    OUT(int64_t, other, SIZE(key));
    OUT(int64_t, left, SIZE(key));
    OUT(int64_t, right, SIZE(key));
    OUT(int64_t, count, 2 * values);
    const Scratch taken = {key, other, left, right, count, SIZE(key)};
    *scratch = taken;
    return 0;
}

static int64_t size_of(const Pool *pool, int64_t a, int64_t b)
{
    const int64_t own = pool->start[a + 1] - pool->start[a];
    return a == b ? own : own + pool->start[b + 1] - pool->start[b];
}

/* Sorts keys, ascending: by insertion where there are few, otherwise by merging runs. */
static void sort_keys(ARRAY(int64_t) key, ARRAY(int64_t) other, int64_t size)
{
    enum { RUN = 16 };
    for (int64_t first = 0; first < size; first += RUN) {
        const int64_t last = lesser(first + RUN, size);
        for (int64_t i = first + 1; i < last; i++) {
            const int64_t own = key[i];
            int64_t at = i;
            for (; at > first && key[at - 1] > own; at--)
                key[at] = key[at - 1];
            key[at] = own;
        }
    }
    for (int64_t run = RUN; run < size; run *= 2) {
        for (int64_t first = 0; first < size; first += 2 * run) {
            const int64_t middle = lesser(first + run, size), last = lesser(first + 2 * run, size);
            int64_t i = first, j = middle;
            for (int64_t at = first; at < last; at++)
                other[at] = j >= last || (i < middle && key[i] <= key[j]) ? key[i++] : key[j++];
        }
        for (int64_t i = 0; i < size; i++)
            key[i] = other[i];
    }
}

/* Writes the individuals of a pool in the order of a column, equal codes in the order of the individuals; `stratified`:
   in the order of the quantile that each has among those with the same value. Returns their number. */
static int64_t arrange(const Pool *pool, const Scratch *scratch, int64_t a, int64_t b, int64_t column, bool stratified)
{
    const ARRAY(const uint16_t) code = column_of(pool->codes, pool->people, column);
    int64_t size = 0;
    for (int64_t side = 0; side < (a == b ? 1 : 2); side++) {
        const int64_t group = side ? b : a;
        for (int64_t i = pool->start[group]; i < pool->start[group + 1]; i++)
            scratch->key[size++] = (int64_t)code[pool->member[i]] << 32 | pool->member[i];
    }
    sort_keys(scratch->key, scratch->other, size);
    for (int64_t i = 0; i < size; i++)
        scratch->key[i] &= 0xFFFFFFFF;
    if (!stratified)
        return size;
    const ARRAY(int64_t) count = scratch->count, seen = scratch->count + pool->values;
    for (int64_t i = 0; i < size; i++)
        count[pool->value[scratch->key[i]]] = seen[pool->value[scratch->key[i]]] = 0;
    for (int64_t i = 0; i < size; i++)
        count[pool->value[scratch->key[i]]]++;
    for (int64_t i = 0; i < size; i++) {
        const int64_t v = pool->value[scratch->key[i]];
        scratch->left[i] = scratch->key[i];
        scratch->key[i] = ((2 * seen[v]++ + 1) << 30) / (2 * count[v]) << 31 | i;
    }
    sort_keys(scratch->key, scratch->other, size);
    for (int64_t i = 0; i < size; i++)
        scratch->key[i] = scratch->left[scratch->key[i] & 0x7FFFFFFF];
    return size;
}

/* Writes the widths in all columns of the individuals from one end of an order up to each. */
static void widen(const Pool *pool, const ARRAY(int64_t) order, int64_t size, bool backward, ARRAY(int64_t) wide)
{
    for (int64_t i = 0; i < size; i++)
        wide[i] = 0;
    for (int64_t j = 0; j < pool->columns; j++) {
        const ARRAY(const uint16_t) code = column_of(pool->codes, pool->people, j);
        const ARRAY(const int64_t) place = pool->scale + pool->scale_start[j];
        int64_t low = 65536, high = -1;
        for (int64_t step = 0; step < size; step++) {
            const int64_t i = backward ? size - 1 - step : step, own = code[order[i]];
            low = lesser(low, own);
            high = greater(high, own);
            wide[i] += place[high] - place[low];
        }
    }
}

/* The best ways to divide a pool, the most gained first, of equal gains the one that was found first. */
typedef struct {
    ARRAY(int64_t) gain, way, place;
    int64_t most;
} Best;

static void offer(const Best *best, int64_t gain, int64_t way, int64_t place)
{
    int64_t at = best->most;
    if (gain <= best->gain[at - 1])
        return;
    for (at--; at > 0 && best->gain[at - 1] < gain; at--) {
        best->gain[at] = best->gain[at - 1];
        best->way[at] = best->way[at - 1];
        best->place[at] = best->place[at - 1];
    }
    best->gain[at] = gain;
    best->way[at] = way;
    best->place[at] = place;
}

/* Offers every division of a pool along an order, with at least `least` individuals on both sides. */
static void divide(const Pool *pool, const Scratch *scratch, int64_t size, int64_t lost, int64_t least, int64_t way,
                   const Best *best)
{
    widen(pool, scratch->key, size, false, scratch->left);
    widen(pool, scratch->key, size, true, scratch->right);
    for (int64_t at = least; at <= size - least; at++)
        offer(best, lost - at * scratch->left[at - 1] - (size - at) * scratch->right[at], way, at);
}

/* Offers every move of one individual from a group to another. */
static void move(const Pool *pool, const Scratch *scratch, int64_t from, int64_t to, int64_t lost, int64_t least,
                 int64_t way, const Best *best)
{
    const int64_t size = pool->start[from + 1] - pool->start[from], others = pool->start[to + 1] - pool->start[to];
    if (size <= least)
        return;
    for (int64_t i = 0; i < size; i++)
        scratch->left[i] = scratch->right[i] = 0; /* the widths of the rest, and of the others with the one moved */
    for (int64_t j = 0; j < pool->columns; j++) {
        const ARRAY(const uint16_t) code = column_of(pool->codes, pool->people, j);
        const ARRAY(const int64_t) place = pool->scale + pool->scale_start[j];
        int64_t low[2] = {65536, 65536}, high[2] = {-1, -1}, there_low = 65536, there_high = -1;
        for (int64_t i = 0; i < size; i++) { /* the two lowest and the two highest codes */
            const int64_t own = code[pool->member[pool->start[from] + i]];
            low[1] = own < low[0] ? low[0] : lesser(low[1], own);
            low[0] = lesser(low[0], own);
            high[1] = own > high[0] ? high[0] : greater(high[1], own);
            high[0] = greater(high[0], own);
        }
        for (int64_t i = 0; i < others; i++) {
            const int64_t own = code[pool->member[pool->start[to] + i]];
            there_low = lesser(there_low, own);
            there_high = greater(there_high, own);
        }
        for (int64_t i = 0; i < size; i++) {
            const int64_t own = code[pool->member[pool->start[from] + i]];
            scratch->left[i] += place[high[own == high[0]]] - place[low[own == low[0]]];
            scratch->right[i] += place[greater(there_high, own)] - place[lesser(there_low, own)];
        }
    }
    for (int64_t i = 0; i < size; i++)
        offer(best, lost - (size - 1) * scratch->left[i] - (others + 1) * scratch->right[i], way, i);
}

/* Finds the ways to divide pools of two groups, or of one (a and b are the same), that lose least: `way` j < columns
   orders the pool by column j, and the first `place` of it are one part; columns + j does so with every value by itself;
   2 columns moves the member number `place` of the first group to the second, 2 columns + 1 the other way. `gain` is
   how much less is lost, 0 where there is no such way. */
KERNEL(search_pool_ways)
{
    Pool pool;
    TAKE(Pool, &pool);
    Scratch scratch;
    TAKE(Scratch, &scratch, pool.values);
    IN(int64_t, a, ANY);
    IN(int64_t, b, SIZE(a));
    IN(int64_t, lost, SIZE(a));
    INTEGER(least);
    INTEGER(stratified);
    INTEGER(most);
    OUT(int64_t, gain, SIZE(a), most);
    OUT(int64_t, way, SIZE(a), most);
    OUT(int64_t, place, SIZE(a), most);
    REQUIRE(least > 0 && most > 0);
    for (int64_t i = 0; i < SIZE(a); i++) {
        REQUIRE(a[i] >= 0 && a[i] < pool.groups && b[i] >= 0 && b[i] < pool.groups);
        REQUIRE(size_of(&pool, a[i], b[i]) <= scratch.room);
    }
    for (int64_t i = 0; i < SIZE(a); i++) {
        const Best best = {gain + i * most, way + i * most, place + i * most, most};
        for (int64_t c = 0; c < most; c++)
            best.gain[c] = 0;
        for (int64_t j = 0; size_of(&pool, a[i], b[i]) >= 2 * least && j < pool.columns * (stratified ? 2 : 1); j++) {
            const bool within = j >= pool.columns;
            const int64_t size = arrange(&pool, &scratch, a[i], b[i], j % pool.columns, within);
            divide(&pool, &scratch, size, lost[i], least, j, &best);
        }
        if (a[i] != b[i]) {
            move(&pool, &scratch, a[i], b[i], lost[i], least, 2 * pool.columns, &best);
            move(&pool, &scratch, b[i], a[i], lost[i], least, 2 * pool.columns + 1, &best);
        }
    }
    return 0;
}

/* Writes the members of pools, divided in given ways: those of the first part, of which there are `first`, and then the
   others. The members of pool i are written from room_start[i] on. */
KERNEL(search_pool_parts)
{
    Pool pool;
    TAKE(Pool, &pool);
    Scratch scratch;
    TAKE(Scratch, &scratch, pool.values);
    IN(int64_t, a, ANY);
    IN(int64_t, b, SIZE(a));
    IN(int64_t, way, SIZE(a));
    IN(int64_t, place, SIZE(a));
    IN(int64_t, room_start, SIZE(a) + 1);
    OUT(int32_t, member, AT_LEAST(room_start[SIZE(a)]));
    OUT(int64_t, first, SIZE(a));
    for (int64_t i = 0; i < SIZE(a); i++) {
        REQUIRE(a[i] >= 0 && a[i] < pool.groups && b[i] >= 0 && b[i] < pool.groups);
        const int64_t size = size_of(&pool, a[i], b[i]), own = pool.start[a[i] + 1] - pool.start[a[i]];
        REQUIRE(size <= scratch.room && room_start[i] >= 0 && room_start[i] + size <= room_start[i + 1]);
        REQUIRE(way[i] >= 0 && way[i] < 2 * pool.columns + 2 && place[i] >= 0 && place[i] <= size);
        REQUIRE(way[i] < 2 * pool.columns || (a[i] != b[i] && place[i] < (way[i] % 2 ? size - own : own)));
    }
    for (int64_t i = 0; i < SIZE(a); i++) {
        const ARRAY(int32_t) found = member + room_start[i];
        if (way[i] < 2 * pool.columns) {
            const int64_t size = arrange(&pool, &scratch, a[i], b[i], way[i] % pool.columns, way[i] >= pool.columns);
            for (int64_t c = 0; c < size; c++)
                found[c] = (int32_t)scratch.key[c];
            first[i] = place[i];
            continue;
        }
        const bool back = way[i] % 2;
        const int64_t moved = pool.start[back ? b[i] : a[i]] + place[i];
        int64_t low = 0, high = size_of(&pool, a[i], b[i]);
        for (int64_t side = 0; side < 2; side++) {
            const int64_t group = side ? b[i] : a[i];
            for (int64_t c = pool.start[group]; c < pool.start[group + 1]; c++) {
                if ((side != 0) != (c == moved))
                    found[--high] = pool.member[c];
                else
                    found[low++] = pool.member[c];
            }
        }
        first[i] = low;
    }
    return 0;
}

/* Finds for each group that is marked as changed the groups nearest to it, -1 where there are no more: those whose range
   grows least if it is to cover both, of equal ones the first. The common range is not much wider than their own, one of
   which has a width. */
KERNEL(search_near_groups)
{
    IN(int64_t, low, ANY, ANY);
    IN(int64_t, high, SIZE(low), COLUMNS(low));
    IN(int64_t, width, SIZE(low));
    IN(bool, changed, SIZE(low));
    OUT(int64_t, near, SIZE(low), ANY);
    OUT(int64_t, growth, COLUMNS(near));
    const int64_t columns = COLUMNS(low), most = COLUMNS(near);
    REQUIRE(most > 0);
    for (int64_t x = 0; x < SIZE(low); x++) {
        for (int64_t c = 0; c < most; c++) {
            near[x * most + c] = -1;
            growth[c] = INT64_MAX / 2;
        }
        for (int64_t y = 0; changed[x] && y < SIZE(low); y++) {
            const int64_t limit = lesser((width[x] + width[y]) * 3 / 2, growth[most - 1] + width[y] - 1);
            if (x == y || width[x] + width[y] == 0)
                continue;
            int64_t own = 0;
            for (int64_t j = 0; j < columns && own <= limit; j++)
                own += greater(high[x * columns + j], high[y * columns + j]) -
                       lesser(low[x * columns + j], low[y * columns + j]);
            if (own > limit)
                continue;
            int64_t at = most - 1;
            for (; at > 0 && growth[at - 1] > own - width[y]; at--) {
                growth[at] = growth[at - 1];
                near[x * most + at] = near[x * most + at - 1];
            }
            growth[at] = own - width[y];
            near[x * most + at] = y;
        }
    }
    return 0;
}
