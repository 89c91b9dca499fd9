/* r-robustness: the bound on the posterior of every group or value, and the posterior itself by adding up all possible
   worlds. */
#include "criteria/kernels_counts.h"

#define VANISHED 1e-200 /* chances below this may have lost terms that were rounded to zero */
#define MOST_KINDS 64   /* of places: each kind doubles the states at least, and how many these are is an int64 */

/* How many items or places there are of each kind. */
typedef struct {
    ARRAY(const int64_t) count;
    int64_t size;
} Kinds;

/* Of each group the signatures code[start[g]:start[g + 1]] that occur in it, and how many people have each. */
typedef struct {
    ARRAY(const int64_t) start, code, count;
} Signatures;

static inline int64_t take_Signatures(Call *call, Signatures *signatures, int64_t groups)
{
    IN(int64_t, start, groups + 1);
    IN(int64_t, code, start[groups]);
    IN(int64_t, count, SIZE(code));
    const Signatures taken = {start, code, count};
    *signatures = taken;
    return 0;
}

/* The largest over the smallest prior p[signature, value] among the signatures of a group; infinite with a zero. */
static inline double spread_of(ARRAY(const double) p, int64_t values, int64_t value, const Signatures *signatures,
                               int64_t group)
{
    double least = INFINITY, most = 0.0;
    for (int64_t i = signatures->start[group]; i < signatures->start[group + 1]; i++) {
        const double chance = p[signatures->code[i] * values + value];
        least = chance < least ? chance : least;
        most = chance > most ? chance : most;
    }
    return least > 0.0 ? most / least : INFINITY;
}

/* One over the bound on the posterior of any value in each group, at least 1. `spread` has room for the values of any
   group. */
KERNEL(robustness_bound_groups)
{
    Groups groups;
    TAKE(Groups, &groups);
    Signatures signatures;
    TAKE(Signatures, &signatures, groups.size);
    IN(double, p, ANY, ANY);
    OUT(double, inverse, groups.size);
    OUT(double, spread, AT_LEAST(longest(groups.start, groups.size)));
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t low = groups.start[g], high = groups.start[g + 1];
        double top = 1.0, second = 1.0;
        int64_t widest = -1;
        for (int64_t e = low; e < high; e++) {
            const double wide = spread_of(p, COLUMNS(p), groups.value[e], &signatures, g);
            spread[e - low] = wide;
            if (widest < 0 || wide > top) {
                second = top;
                top = wide;
                widest = e;
            } else if (wide > second) {
                second = wide;
            }
        }
        double least = INFINITY;
        for (int64_t e = low; e < high; e++) {
            const double other = e == widest ? second : top;
            const double wide = spread[e - low] * other;
            const double found = (1.0 + (double)(groups.n[g] - 1) / wide) / (double)groups.count[e];
            least = found < least ? found : least;
        }
        inverse[g] = least < 1.0 ? 1.0 : least;
    }
    return 0;
}

/* The same for each value asked about, which stands against all others together. */
KERNEL(robustness_bound_values)
{
    IN(int64_t, group, ANY);
    IN(int64_t, entry, SIZE(group));
    Groups groups;
    TAKE(Groups, &groups);
    Signatures signatures;
    TAKE(Signatures, &signatures, groups.size);
    IN(double, yes, ANY, ANY);
    IN(double, no, SIZE(yes), COLUMNS(yes));
    OUT(double, inverse, SIZE(group));
    for (int64_t i = 0; i < SIZE(group); i++) {
        const int64_t g = group[i], n = groups.n[g], x = groups.value[entry[i]], c = groups.count[entry[i]];
        inverse[i] = 1.0;
        if (c < n) {
            double wide = spread_of(yes, COLUMNS(yes), x, &signatures, g);
            wide *= spread_of(no, COLUMNS(no), x, &signatures, g);
            const double found = (1.0 + (double)(n - 1) / wide) / (double)c;
            inverse[i] = found < 1.0 ? 1.0 : found;
        }
    }
    return 0;
}

/* The next state in mixed radix; returns by how much the number of items placed changes. */
static inline int64_t next(ARRAY(const int64_t) most, ARRAY(int64_t) used)
{
    int64_t change = 1, b = 0;
    while (used[b] == most[b]) {
        change -= used[b];
        used[b++] = 0;
    }
    used[b]++;
    return change;
}

static inline int64_t previous(ARRAY(const int64_t) most, ARRAY(int64_t) used)
{
    int64_t change = -1, b = 0;
    while (used[b] == 0) {
        used[b] = most[b];
        change += most[b++];
    }
    used[b]--;
    return change;
}

/* What the worlds of a question are added up in: a number for each state in `forward` and `backward`, one for each item
   in `items`, and one for each kind of item and of place in `w` and `weight`. */
typedef struct {
    ARRAY(double) forward, backward;
    ARRAY(int64_t) items;
    ARRAY(double) w, weight;
} Scratch;

/* Adds to weight[a, b] the weights of all worlds in which an item of kind a goes to a place of kind b. (`hand_out` of
   r_robustness.py does the same in exact numbers.)

   `items` lists the kind of every item in ascending order, most[b] is the number of places of kind b, as many in all
   as items; a world has the product of its w[a, b] as weight. A state says how many places of each kind the first
   items have filled; forward[state] adds up the ways to get there, backward[state] those to go on to the end. */
static void hand_out(int64_t n, Kinds most, const Scratch *scratch)
{
    const ARRAY(const int64_t) items = scratch->items;
    const ARRAY(double) forward = scratch->forward, backward = scratch->backward;
    int64_t stride[MOST_KINDS], used[MOST_KINDS], size = 1, placed = 0;
    for (int64_t b = 0; b < most.size; b++) {
        stride[b] = size;
        used[b] = 0;
        size *= most.count[b] + 1;
    }
    forward[0] = 1.0;
    for (int64_t at = 1; at < size; at++) {
        placed += next(most.count, used);
        const ARRAY(const double) row = scratch->w + items[placed - 1] * most.size;
        double ways = 0.0;
        for (int64_t b = 0; b < most.size; b++)
            if (used[b] > 0)
                ways += forward[at - stride[b]] * row[b];
        forward[at] = ways;
    }
    backward[size - 1] = 1.0;
    for (int64_t at = size - 2; at >= 0; at--) {
        placed += previous(most.count, used);
        const int64_t a = items[placed];
        const ARRAY(const double) row = scratch->w + a * most.size;
        const ARRAY(double) sums = scratch->weight + a * most.size;
        const bool last = placed + 1 == n || items[placed + 1] != a;
        double ways = 0.0;
        for (int64_t b = 0; b < most.size; b++) {
            if (used[b] < most.count[b]) {
                const double way = row[b] * backward[at + stride[b]];
                ways += way;
                if (last)
                    sums[b] += forward[at] * way;
            }
        }
        backward[at] = ways;
    }
}

/* Scales w by kinds of places, then by kinds of items to sum 1: no posterior changes, and nothing overflows or
   vanishes without need. False if some kind of item or place can have no share. */
static bool balance(Kinds kinds, Kinds most, ARRAY(double) w)
{
    for (int64_t b = 0; b < most.size; b++) {
        double total = 0.0;
        for (int64_t a = 0; a < kinds.size; a++)
            total += (double)kinds.count[a] * w[a * most.size + b];
        if (total == 0.0)
            return false;
        const double scale = (double)most.count[b] / total;
        for (int64_t a = 0; a < kinds.size; a++)
            w[a * most.size + b] *= scale;
    }
    for (int64_t a = 0; a < kinds.size; a++) {
        const ARRAY(double) row = w + a * most.size;
        double total = 0.0;
        for (int64_t b = 0; b < most.size; b++)
            total += row[b];
        if (total == 0.0)
            return false;
        for (int64_t b = 0; b < most.size; b++)
            row[b] /= total;
    }
    return true;
}

/* How many states `hand_out` would have; limit + 1 if more than limit. */
static int64_t states(Kinds most, int64_t limit)
{
    int64_t size = 1;
    for (int64_t b = 0; b < most.size; b++) {
        size *= most.count[b] + 1;
        if (size > limit)
            return limit + 1;
    }
    return size;
}

static inline int64_t digits(int64_t number)
{
    int64_t found = 0;
    for (; number > 0; number >>= 1)
        found++;
    return found;
}

static inline int64_t sum(Kinds kinds)
{
    int64_t total = 0;
    for (int64_t a = 0; a < kinds.size; a++)
        total += kinds.count[a];
    return total;
}

/* One over the largest posterior of the first `asked` values; nan if no world has a weight worth its name. */
static double inverse_of(Kinds kinds, Kinds most, const Scratch *scratch, int64_t asked, bool by_people)
{
    const int64_t n = sum(kinds);
    if (n != sum(most) || !balance(kinds, most, scratch->w))
        return NAN;
    for (int64_t a = 0, at = 0; a < kinds.size; a++)
        for (const int64_t end = at + kinds.count[a]; at < end; at++)
            scratch->items[at] = a;
    for (int64_t cell = 0; cell < kinds.size * most.size; cell++)
        scratch->weight[cell] = 0.0;
    hand_out(n, most, scratch);
    double largest = 0.0;
    for (int64_t a = 0; a < kinds.size; a++) {
        const ARRAY(const double) row = scratch->weight + a * most.size;
        double total = 0.0;
        for (int64_t b = 0; b < most.size; b++)
            total += row[b];
        if (!(total > VANISHED))
            return NAN;
        for (int64_t b = 0; b < most.size; b++) {
            double found = 0.0;
            if (by_people && b < asked)
                found = row[b] / total;
            else if (!by_people && a < asked)
                found = row[b] / total * (double)kinds.count[a] / (double)most.count[b];
            largest = found > largest ? found : largest;
        }
    }
    return largest > 0.0 ? 1.0 / (largest > 1.0 ? 1.0 : largest) : NAN;
}

/* One over the largest posterior in each group (entry -1) or of the value of one entry; nan if there are more states
   than the scratch space has room for, or no worlds.

   What fits has fewer items than states, thus fewer kinds of them, and no more kinds of places than this limit has
   binary digits. */
KERNEL(robustness_largest_posteriors)
{
    IN(int64_t, group, ANY);
    IN(int64_t, entry, SIZE(group));
    Groups groups;
    TAKE(Groups, &groups);
    Signatures signatures;
    TAKE(Signatures, &signatures, groups.size);
    IN(double, yes, ANY, ANY);
    IN(double, no, SIZE(yes), COLUMNS(yes));
    OUT(double, inverse, SIZE(group));
    OUT(double, forward, AT_LEAST(1));
    const int64_t limit = SIZE(forward);
    OUT(double, backward, limit);
    OUT(int64_t, items, limit);
    OUT(double, w, limit, AT_LEAST(digits(limit)));
    OUT(double, weight, limit, COLUMNS(w));
    const Scratch scratch = {forward, backward, items, w, weight};
    for (int64_t i = 0; i < SIZE(group); i++) {
        const int64_t g = group[i], e = entry[i], n = groups.n[g];
        const int64_t first = groups.start[g], served = signatures.start[g];
        const Kinds people = {signatures.count + served, signatures.start[g + 1] - served};
        Kinds copies = {groups.count + first, groups.start[g + 1] - first};
        int64_t pair[2];
        inverse[i] = NAN;
        if (e >= 0) {
            if (groups.count[e] == n) {
                inverse[i] = 1.0;
                continue;
            }
            pair[0] = groups.count[e];
            pair[1] = n - groups.count[e];
            copies.count = pair;
            copies.size = 2;
        }
        const bool by_people = states(copies, limit) <= states(people, limit);
        const Kinds kinds = by_people ? people : copies, most = by_people ? copies : people;
        if (states(most, limit) > limit || kinds.size > limit)
            continue;
        for (int64_t s = 0; s < people.size; s++) { /* the priors of the group, one row for each kind of item */
            const int64_t row = signatures.code[served + s] * COLUMNS(yes);
            for (int64_t v = 0; v < copies.size; v++) {
                const int64_t x = groups.value[e < 0 ? first + v : e];
                const double p = e < 0 || v == 0 ? yes[row + x] : no[row + x];
                w[by_people ? s * most.size + v : v * most.size + s] = p;
            }
        }
        inverse[i] = inverse_of(kinds, most, &scratch, e < 0 ? copies.size : 1, by_people);
    }
    return 0;
}
