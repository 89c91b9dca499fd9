/* Dealing, for *merge* and *colour*: sets of entries are split by their quasi-identifiers while both parts can be
   dealt, and the people of each part are then dealt out to its groups. An entry is a record with its people;
   codes[column, entry] are its quasi-identifiers, place[entry] is the position of its sensitive value in the order in
   which values are dealt. */
#include "core/kernels.h"

#define OPEN 256 /* nodes that are open at the same time; each is at most half of those below it */

/* The rule of what may be dealt: groups of `size`, of whom at most near[people of the group] others lie in the window
   low[p]..high[p] around the place p of the value of any of them. Places from `windows` on have no window: any number
   of people may have those values. */
typedef struct {
    int64_t size;
    ARRAY(const int64_t) near, low, high;
    int64_t windows;
} Rule;

static inline int64_t take_Rule(Call *call, Rule *rule)
{
    INTEGER(size);
    REQUIRE(size > 0);
    IN(int64_t, near, AT_LEAST(2 * size));
    IN(int64_t, low, ANY);
    IN(int64_t, high, SIZE(low));
    const Rule taken = {size, near, low, high, SIZE(low)};
    *rule = taken;
    return 0;
}

/* Entries of a table with all its columns. */
typedef struct {
    ARRAY(const uint16_t) codes;
    int64_t columns, count; /* each column has a row with `count` entries */
    ARRAY(const int64_t) place, people;
} Entries;

static inline int64_t take_Entries(Call *call, Entries *entries)
{
    IN(uint16_t, codes, ANY, ANY);
    IN(int64_t, place, COLUMNS(codes));
    IN(int64_t, people, COLUMNS(codes));
    const Entries taken = {codes, SIZE(codes), COLUMNS(codes), place, people};
    *entries = taken;
    return 0;
}

static inline ARRAY(const uint16_t) column_of(const Entries *entries, int64_t column)
{
    return entries->codes + column * entries->count;
}

/* The entries order[start:stop], in the order of their places. */
typedef struct {
    ARRAY(int64_t) order;
    int64_t start, stop, people;
} Node;

/* Scratch space: a number for each column in `width`, `lowest` and `highest`, one for each entry in `spare`, `places`
   and `weights`, one for each code in `held`. */
typedef struct {
    ARRAY(double) width;
    ARRAY(int64_t) lowest, highest, spare, places, weights, held;
} Scratch;

/* Returns whether the first `count` entries, in the order of their places and with `total` people, can be dealt out to
   groups: no window around a place of theirs has more people than 1 + near[people of the smallest group] for each
   group. */
static inline bool holds(ARRAY(const int64_t) place, ARRAY(const int64_t) people, int64_t count, int64_t total,
                         const Rule *rule)
{
    const ARRAY(const int64_t) low = rule->low, high = rule->high;
    const int64_t groups = total / rule->size;
    if (groups == 0)
        return false;
    const int64_t most = groups * (1 + rule->near[total / groups]);
    int64_t first = 0, last = 0, inside = 0;
    for (int64_t e = 0; e < count && place[e] < rule->windows; e++) {
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

/* Returns whether people at some places, which ascend, can be dealt, as above. */
KERNEL(dealing_can_be_dealt)
{
    IN(int64_t, place, ANY);
    IN(int64_t, people, SIZE(place));
    Rule rule;
    TAKE(Rule, &rule);
    int64_t total = 0;
    for (int64_t i = 0; i < SIZE(people); i++)
        total += people[i];
    return holds(place, people, SIZE(place), total, &rule);
}

/* Returns the lowest code of a column that at least half of the people do not exceed, always below the highest that
   occurs. */
static inline int64_t median(const Entries *all, const Node *node, int64_t j, const Scratch *scratch)
{
    const ARRAY(const uint16_t) column = column_of(all, j);
    const ARRAY(const int64_t) people = all->people, order = node->order;
    const ARRAY(int64_t) held = scratch->held;
    const int64_t start = node->start, stop = node->stop;
    int64_t low = scratch->lowest[j], high = scratch->highest[j];
    if (high - low + 1 <= 4 * (stop - start)) {
        for (int64_t code = low; code <= high; code++)
            held[code] = 0;
        for (int64_t i = start; i < stop; i++)
            held[column[order[i]]] += people[order[i]];
        int64_t cut = low, below = held[low];
        while (2 * below < node->people)
            below += held[++cut];
        return lesser(cut, high - 1);
    }
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        int64_t below = 0;
        for (int64_t i = start; i < stop; i++)
            if (column[order[i]] <= middle)
                below += people[order[i]];
        if (2 * below < node->people)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether the entries of a node at or below a cut, or those above it, can be dealt. */
static inline bool side(const Entries *all, const Node *node, int64_t j, int64_t cut, bool above, const Rule *rule,
                        const Scratch *scratch)
{
    const ARRAY(const uint16_t) column = column_of(all, j);
    const ARRAY(int64_t) places = scratch->places, weights = scratch->weights;
    int64_t count = 0, total = 0;
    for (int64_t i = node->start; i < node->stop; i++) {
        const int64_t e = node->order[i];
        if ((column[e] > cut) == above) {
            places[count] = all->place[e];
            weights[count] = all->people[e];
            total += all->people[e];
            count++;
        }
    }
    return holds(places, weights, count, total, rule);
}

/* Puts the entries at or below a cut first, and keeps the order within each side; returns where those above start. */
static inline int64_t divide(ARRAY(const uint16_t) column, const Node *node, int64_t cut, ARRAY(int64_t) spare)
{
    const ARRAY(int64_t) order = node->order;
    int64_t at = node->start, aside = 0;
    for (int64_t i = node->start; i < node->stop; i++) {
        if (column[order[i]] <= cut)
            order[at++] = order[i];
        else
            spare[aside++] = order[i];
    }
    for (int64_t i = 0; i < aside; i++)
        order[at + i] = spare[i];
    return at;
}

/* Writes the span of the codes of a node in each column, as a share of the whole column (scale[column, code], rows of
   `scaled`); returns the widest column. */
static inline int64_t widths(const Entries *all, const Node *node, ARRAY(const double) scale, int64_t scaled,
                             const Scratch *scratch)
{
    const ARRAY(double) width = scratch->width;
    int64_t widest = 0;
    for (int64_t j = 0; j < all->columns; j++) {
        const ARRAY(const uint16_t) column = column_of(all, j);
        int64_t low = 65535, high = 0;
        for (int64_t i = node->start; i < node->stop; i++) {
            const int64_t code = column[node->order[i]];
            low = lesser(low, code);
            high = greater(high, code);
        }
        scratch->lowest[j] = low;
        scratch->highest[j] = high;
        width[j] = high > low ? scale[j * scaled + high] - scale[j * scaled + low] : -1.0;
        if (high > low && width[j] <= 0.0)
            width[j] = 0.0;
        if (width[j] > width[widest])
            widest = j;
    }
    return widest;
}

/* Finds a cut whose two sides can be dealt: along the widest column first, at its median, otherwise just below it.
   Returns -1 if there is none; writes the column to `column`. */
static int64_t find_cut(const Entries *all, const Node *node, ARRAY(const double) scale, int64_t scaled,
                        const Rule *rule, const Scratch *scratch, int64_t *column)
{
    const ARRAY(double) width = scratch->width;
    int64_t j = widths(all, node, scale, scaled, scratch);
    while (width[j] >= 0.0) {
        const int64_t middle = median(all, node, j, scratch);
        for (int64_t cut = middle; cut >= middle - 1; cut--)
            if (cut >= scratch->lowest[j] && side(all, node, j, cut, false, rule, scratch) &&
                side(all, node, j, cut, true, rule, scratch)) {
                *column = j;
                return cut;
            }
        width[j] = -1.0;
        for (int64_t other = 0; other < all->columns; other++)
            if (width[other] > width[j])
                j = other;
    }
    return -1;
}

/* Splits the nodes order[start[i]:start[i + 1]], entries in the order of their places, while there is a cut whose two
   sides can be dealt. Writes where the parts start in `order`, which is rearranged, to `leaf`; returns the number of
   parts. The rest is scratch space. */
KERNEL(dealing_split)
{
    Entries all;
    TAKE(Entries, &all);
    REQUIRE(all.columns > 0);
    OUT(int64_t, order, all.count);
    IN(int64_t, start, AT_LEAST(1));
    REQUIRE(start[SIZE(start) - 1] <= all.count);
    IN(double, scale, all.columns, ANY);
    Rule rule;
    TAKE(Rule, &rule);
    OUT(int64_t, leaf, all.count + 1);
    OUT(double, width, all.columns);
    OUT(int64_t, ends, 2, all.columns);
    OUT(int64_t, spare, 3, all.count);
    OUT(int64_t, held, COLUMNS(scale));
    const Scratch scratch = {
        width, ends, ends + all.columns, spare, spare + all.count, spare + 2 * all.count, held,
    };
    int64_t first[OPEN], last[OPEN], leaves = 0;
    for (int64_t root = 0; root < SIZE(start) - 1; root++) {
        int64_t open = 1;
        first[0] = start[root];
        last[0] = start[root + 1];
        while (open > 0) {
            open--;
            Node node = {order, first[open], last[open], 0};
            int64_t j = 0, cut = -1;
            for (int64_t i = node.start; i < node.stop; i++)
                node.people += all.people[order[i]];
            if (node.people >= 2 * rule.size && open < OPEN - 2)
                cut = find_cut(&all, &node, scale, COLUMNS(scale), &rule, &scratch, &j);
            if (cut < 0) {
                leaf[leaves++] = node.start;
                continue;
            }
            const int64_t middle = divide(column_of(&all, j), &node, cut, spare);
            first[open] = middle;
            last[open] = node.stop;
            first[open + 1] = node.start;
            last[open + 1] = middle;
            open += 2;
        }
    }
    leaf[leaves] = all.count;
    return leaves;
}

/* Returns the remainder of a number that is less than twice the divisor. */
static inline int64_t around(int64_t number, int64_t divisor) { return number < divisor ? number : number - divisor; }

/* Returns the number of people of the entries of a part. */
static inline int64_t people_of(ARRAY(const int64_t) order, ARRAY(const int64_t) people, int64_t first, int64_t last)
{
    int64_t total = 0;
    for (int64_t i = first; i < last; i++)
        total += people[order[i]];
    return total;
}

/* Deals the people of each part, in the order of their places, round-robin to its groups: the largest number of groups
   with at least `size` people each. Writes entry, group and people to arrays that are long enough for all people and
   one more; returns the number of entries written, and in the last place of `out_group` the number of groups. */
KERNEL(dealing_deal)
{
    IN(int64_t, order, ANY);
    IN(int64_t, people, SIZE(order));
    IN(int64_t, leaf, AT_LEAST(1));
    REQUIRE(leaf[SIZE(leaf) - 1] <= SIZE(order));
    INTEGER(size);
    REQUIRE(size > 0);
    OUT(int64_t, out_entry, AT_LEAST(people_of(order, people, leaf[0], leaf[SIZE(leaf) - 1]) + 1));
    OUT(int64_t, out_group, SIZE(out_entry));
    OUT(int64_t, out_people, SIZE(out_entry));
    int64_t at = 0, group = 0;
    for (int64_t part = 0; part < SIZE(leaf) - 1; part++) {
        const int64_t groups = people_of(order, people, leaf[part], leaf[part + 1]) / size;
        int64_t next = 0;
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
