/* Greedy colouring, for similarities without an order (colour.py): the people of a block get the colours of groups one
   by one, those with the most neighbours first, each the smallest group that admits them. */
#include "core/kernels.h"

#define TRIES 6 /* numbers of groups that are tried, each a quarter less than the previous one */

/* The people of a block with their values, and which values are near each other: near[u, v], a row for each of the
   `values`. `held` are those that occur. */
typedef struct {
    ARRAY(const uint8_t) near;
    int64_t values;
    ARRAY(const int64_t) value;
    int64_t people;
    ARRAY(const int64_t) held;
    int64_t count; /* of values that occur */
} Block;

/* Groups of people: members[group, :size[group]], a row that is long enough for all people, and close[group, v], which
   counts its members near a value v that occurs. */
typedef struct {
    ARRAY(int64_t) members, close, size;
    int64_t count;
} Groups;

/* Returns whether a person with a value may join a group: nobody has more than `most` others near then. */
static inline bool fits(const Block *block, const Groups *groups, int64_t group, int64_t v, int64_t most)
{
    const ARRAY(const int64_t) close = groups->close + group * block->values;
    if (close[v] > most)
        return false;
    const ARRAY(const int64_t) members = groups->members + group * block->people, value = block->value;
    const ARRAY(const uint8_t) near = block->near + v;
    const int64_t size = groups->size[group], values = block->values;
    for (int64_t i = 0; i < size; i++) {
        const int64_t u = value[members[i]];
        if (near[u * values] && close[u] > most)
            return false;
    }
    return true;
}

static inline void count(const Block *block, const Groups *groups, int64_t group, int64_t v, int64_t change)
{
    const ARRAY(int64_t) close = groups->close + group * block->values;
    const ARRAY(const uint8_t) near = block->near + v;
    const ARRAY(const int64_t) held = block->held;
    const int64_t values = block->values, last = block->count;
    for (int64_t i = 0; i < last; i++)
        if (near[held[i] * values])
            close[held[i]] += change;
}

/* Adds a person to a group. */
static inline void add(const Block *block, const Groups *groups, int64_t group, int64_t person)
{
    groups->members[group * block->people + groups->size[group]++] = person;
    count(block, groups, group, block->value[person], 1);
}

/* Moves people from groups with more than the least number to those with fewer. */
static inline bool fill_small(const Block *block, const Groups *groups, int64_t least, int64_t most)
{
    const ARRAY(int64_t) size = groups->size;
    for (int64_t group = 0; group < groups->count; group++) {
        int64_t other = 0, i = 0;
        while (size[group] < least) {
            if (other == groups->count)
                return false;
            if (other == group || i >= size[other] || size[other] <= least) {
                other++;
                i = 0;
                continue;
            }
            const ARRAY(int64_t) members = groups->members + other * block->people;
            const int64_t person = members[i], v = block->value[person];
            if (fits(block, groups, group, v, most)) {
                members[i] = members[--size[other]];
                count(block, groups, other, v, -1);
                add(block, groups, group, person);
            } else {
                i++;
            }
        }
    }
    return true;
}

/* Removes all people from the groups. */
static inline void empty(const Block *block, const Groups *groups)
{
    for (int64_t g = 0; g < groups->count; g++) {
        groups->size[g] = 0;
        for (int64_t i = 0; i < block->count; i++)
            groups->close[g * block->values + block->held[i]] = 0;
    }
}

/* Colours people in the order of `turn`, with groups that are empty; most[n] is the number of others that a person in a
   group of n may have near. */
static inline bool try_colours(const Block *block, const Groups *groups, ARRAY(const int64_t) turn, int64_t least,
                               ARRAY(const int64_t) most, ARRAY(int64_t) group)
{
    const int64_t usual = most[block->people / groups->count];
    const ARRAY(int64_t) size = groups->size;
    for (int64_t t = 0; t < block->people; t++) {
        const int64_t person = turn[t], v = block->value[person];
        int64_t best = -1;
        for (int64_t g = 0; g < groups->count; g++)
            if ((best < 0 || size[g] < size[best]) && fits(block, groups, g, v, usual))
                best = g;
        if (best < 0)
            return false;
        add(block, groups, best, person);
    }
    if (!fill_small(block, groups, least, usual))
        return false;
    for (int64_t g = 0; g < groups->count; g++) {
        const ARRAY(const int64_t) members = groups->members + g * block->people;
        for (int64_t i = 0; i < size[g]; i++) {
            if (groups->close[g * block->values + block->value[members[i]]] - 1 > most[size[g]])
                return false;
            group[members[i]] = g;
        }
    }
    return true;
}

/* Colours the people of a block with groups of at least `least` people, given the value of each, the order in which
   they are coloured (`turn`), and the values that occur; returns the number of groups, or 0 if it found no colouring.
   Scratch space, a row for each possible group: `members` with a number for each of the people, and, all zero,
   `close` with one for each value and `size` with one. */
KERNEL(colour_colour)
{
    IN(uint8_t, near, ANY, ANY);
    IN(int64_t, value, ANY);
    IN(int64_t, turn, SIZE(value));
    IN(int64_t, held, ANY);
    INTEGER(least);
    REQUIRE(least > 0);
    IN(int64_t, most, AT_LEAST(SIZE(value) + 1));
    OUT(int64_t, group, SIZE(value));
    OUT(int64_t, members, SIZE(value) / least, SIZE(value));
    OUT(int64_t, close, SIZE(members), COLUMNS(near));
    OUT(int64_t, size, SIZE(members));
    REQUIRE(SIZE(near) == COLUMNS(near));
    const Block block = {near, COLUMNS(near), value, SIZE(value), held, SIZE(held)};
    Groups groups = {members, close, size, SIZE(members)};
    for (int64_t i = 0; i < TRIES; i++) {
        if (groups.count > 0 && try_colours(&block, &groups, turn, least, most, group))
            return groups.count;
        empty(&block, &groups);
        groups.count = groups.count * 3 / 4;
    }
    return 0;
}
