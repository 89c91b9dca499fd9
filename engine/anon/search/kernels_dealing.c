/* Dealing, which *merge* and *colour* share: sets of entries are split by their quasi-identifiers for as long as both
   parts can be dealt, and the people of each part are then dealt out to its groups. An entry is a record with its
   people; codes[column, entry] are its quasi-identifiers, place[entry] is where its sensitive value stands in the order
   that values are dealt in. */
#include "loops.h"

#define OPEN 256 /* nodes that are open at once; each is at most half of those below it */

/* What may be dealt: groups of `size`, of whom at most near[people of the group] others lie in the window
   low[p]..high[p] around the place p of anybody's value. */
typedef struct {
    int64_t size;
    const int64_t *near, *low, *high;
} Rule;

/* Entries of a table with all its columns. */
typedef struct {
    const uint16_t *codes;
    int64_t columns, width; /* of codes: each column has a row with so many entries */
    const int64_t *place, *people;
} Entries;

/* Whether the first `count` entries, in the order of their places and `total` people, can be dealt out to groups: no
   window around a place of theirs has more people than 1 + near[people of the smallest group] for each group. */
static inline bool holds(const int64_t *place, const int64_t *people, int64_t count, int64_t total, const Rule *rule)
{
    const int64_t *const low = rule->low, *const high = rule->high;
    const int64_t groups = total / rule->size;
    if (groups == 0)
        return false;
    const int64_t most = groups * (1 + rule->near[total / groups]);
    int64_t first = 0, last = 0, inside = 0;
    for (int64_t e = 0; e < count; e++) {
        const int64_t begin = low[place[e]], end = high[place[e]];
        while (last < count && place[last] <= end)
            inside += people[last++];
        while (place[first] < begin)
            inside -= people[first++];
        if (inside > most)
            return false;
    }
    return true;
}

/* Whether the first `count` entries can be dealt, as above. */
LOOP int64_t dealing_can_be_dealt(const Array *of_place, const Array *of_people, int64_t count, int64_t total,
                                  int64_t size, const Array *of_near, const Array *of_low, const Array *of_high)
{
    IN(int64_t, place);
    IN(int64_t, people);
    IN(int64_t, near);
    IN(int64_t, low);
    IN(int64_t, high);
    const Rule rule = {size, near, low, high};
    return holds(place, people, count, total, &rule);
}

/* The lowest code of a column that at least half of the people do not exceed; below `high`, which occurs. */
static inline int64_t median(const uint16_t *column, const int64_t *people, const int64_t *order, int64_t start,
                             int64_t stop, int64_t low, int64_t high, int64_t total, int64_t *held)
{
    if (high - low + 1 <= 4 * (stop - start)) {
        for (int64_t code = low; code <= high; code++)
            held[code] = 0;
        for (int64_t i = start; i < stop; i++)
            held[column[order[i]]] += people[order[i]];
        int64_t cut = low, below = held[low];
        while (2 * below < total)
            below += held[++cut];
        return lesser(cut, high - 1);
    }
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        int64_t below = 0;
        for (int64_t i = start; i < stop; i++)
            if (column[order[i]] <= middle)
                below += people[order[i]];
        if (2 * below < total)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether the entries of a node at or below a cut can be dealt, or those above it. `places` and `weights` have room for
   all entries. */
static inline bool side(const Entries *all, const int64_t *order, int64_t start, int64_t stop, int64_t j, int64_t cut,
                        bool above, const Rule *rule, int64_t *places, int64_t *weights)
{
    const uint16_t *const column = all->codes + j * all->width;
    const int64_t *const place = all->place, *const people = all->people;
    int64_t count = 0, total = 0;
    for (int64_t i = start; i < stop; i++) {
        const int64_t e = order[i];
        if ((column[e] > cut) == above) {
            places[count] = place[e];
            weights[count] = people[e];
            total += people[e];
            count++;
        }
    }
    return holds(places, weights, count, total, rule);
}

/* Puts the entries at or below a cut first, and leaves the order of each side as it is; where those above start. */
static inline int64_t divide(const uint16_t *column, int64_t *order, int64_t start, int64_t stop, int64_t cut,
                             int64_t *spare)
{
    int64_t at = start, aside = 0;
    for (int64_t i = start; i < stop; i++) {
        if (column[order[i]] <= cut)
            order[at++] = order[i];
        else
            spare[aside++] = order[i];
    }
    for (int64_t i = 0; i < aside; i++)
        order[at + i] = spare[i];
    return at;
}

/* How far the codes of a node span in each column, of the whole column; and the widest column. */
static inline int64_t widths(const Entries *all, const int64_t *order, int64_t start, int64_t stop, const double *scale,
                             int64_t scaled, double *width, int64_t *lowest, int64_t *highest)
{
    int64_t widest = 0;
    for (int64_t j = 0; j < all->columns; j++) {
        const uint16_t *const column = all->codes + j * all->width;
        int64_t low = 65535, high = 0;
        for (int64_t i = start; i < stop; i++) {
            const int64_t code = column[order[i]];
            low = lesser(low, code);
            high = greater(high, code);
        }
        lowest[j] = low;
        highest[j] = high;
        width[j] = high > low ? scale[j * scaled + high] - scale[j * scaled + low] : -1.0;
        if (high > low && width[j] <= 0.0)
            width[j] = 0.0;
        if (width[j] > width[widest])
            widest = j;
    }
    return widest;
}

/* Splits the nodes order[start[i]:start[i + 1]], entries in the order of their places, for as long as there is a cut
   whose two sides can be dealt: along the widest column first, at its median, else just below it. Writes where the
   parts start in `order`, which is rearranged, to `leaf`; returns how many there are.
   Scratch: a number for each column in `width`, two rows of them in `ends`, three rows of a number for each entry in
   `spare`, and one for each code in `held`. */
LOOP int64_t dealing_split(const Array *of_codes, const Array *of_place, const Array *of_people, const Array *of_order,
                           const Array *of_start, const Array *of_scale, int64_t size, const Array *of_near,
                           const Array *of_low, const Array *of_high, const Array *of_leaf, const Array *of_width,
                           const Array *of_ends, const Array *of_spare, const Array *of_held)
{
    IN(uint16_t, codes);
    IN(int64_t, place);
    IN(int64_t, people);
    OUT(int64_t, order);
    IN(int64_t, start);
    IN(double, scale);
    IN(int64_t, near);
    IN(int64_t, low);
    IN(int64_t, high);
    OUT(int64_t, leaf);
    OUT(double, width);
    OUT(int64_t, ends);
    OUT(int64_t, spare);
    OUT(int64_t, held);
    const int64_t entries = SIZE(order), columns = SIZE(codes);
    const Entries all = {codes, columns, COLUMNS(codes), place, people};
    const Rule rule = {size, near, low, high};
    int64_t *const lowest = ends, *const highest = ends + columns;
    int64_t *const places = spare + entries, *const weights = spare + 2 * entries;
    int64_t first[OPEN], last[OPEN], leaves = 0;
    for (int64_t root = 0; root < SIZE(start) - 1; root++) {
        int64_t open = 1;
        first[0] = start[root];
        last[0] = start[root + 1];
        while (open > 0) {
            open--;
            const int64_t a = first[open], b = last[open];
            int64_t total = 0, cut = -1, j = 0;
            for (int64_t i = a; i < b; i++)
                total += people[order[i]];
            if (total >= 2 * size && open < OPEN - 2) {
                j = widths(&all, order, a, b, scale, COLUMNS(scale), width, lowest, highest);
                while (width[j] >= 0.0 && cut < 0) {
                    const uint16_t *const column = codes + j * all.width;
                    const int64_t middle = median(column, people, order, a, b, lowest[j], highest[j], total, held);
                    for (int64_t c = middle; c >= middle - 1 && cut < 0; c--)
                        if (c >= lowest[j] && side(&all, order, a, b, j, c, false, &rule, places, weights) &&
                            side(&all, order, a, b, j, c, true, &rule, places, weights))
                            cut = c;
                    if (cut < 0) {
                        width[j] = -1.0;
                        for (int64_t other = 0; other < columns; other++)
                            if (width[other] > width[j])
                                j = other;
                    }
                }
            }
            if (cut < 0) {
                leaf[leaves++] = a;
                continue;
            }
            const int64_t middle = divide(codes + j * all.width, order, a, b, cut, spare);
            first[open] = middle;
            last[open] = b;
            first[open + 1] = a;
            last[open + 1] = middle;
            open += 2;
        }
    }
    leaf[leaves] = entries;
    return leaves;
}

/* The remainder of a number that is less than twice the divisor. */
static inline int64_t around(int64_t number, int64_t divisor) { return number < divisor ? number : number - divisor; }

/* Deals the people of each part, in the order of their places, round-robin to its groups, which are numbered from
   `group` on: as many as have at least `size` people each. Writes entry, group and people; returns how many there are,
   and in out_group[-1] the number of the next group. */
LOOP int64_t dealing_deal(const Array *of_order, const Array *of_people, const Array *of_leaf, int64_t size,
                          int64_t group, const Array *of_out_entry, const Array *of_out_group,
                          const Array *of_out_people)
{
    IN(int64_t, order);
    IN(int64_t, people);
    IN(int64_t, leaf);
    OUT(int64_t, out_entry);
    OUT(int64_t, out_group);
    OUT(int64_t, out_people);
    int64_t at = 0;
    for (int64_t part = 0; part < SIZE(leaf) - 1; part++) {
        int64_t total = 0, next = 0;
        for (int64_t i = leaf[part]; i < leaf[part + 1]; i++)
            total += people[order[i]];
        const int64_t groups = total / size;
        if (groups == 0)
            continue; /* nobody to deal to */
        for (int64_t i = leaf[part]; i < leaf[part + 1]; i++) {
            const int64_t e = order[i], own = people[e], whole = own / groups, more = own % groups;
            const int64_t shares = lesser(own, groups);
            for (int64_t k = 0; k < shares; k++) {
                out_entry[at] = e;
                out_people[at] = whole + (k < more);
                out_group[at] = group + around(next + k, groups);
                at++;
            }
            next = around(next + more, groups);
        }
        group += groups;
    }
    out_group[SIZE(out_group) - 1] = group;
    return at;
}
