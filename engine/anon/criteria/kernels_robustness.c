/* r-robustness: the bound on the posterior of every group or value, and the posterior itself by adding up all possible
   worlds. */
#include "loops.h"

#define VANISHED 1e-200 /* chances below this may have lost terms that were rounded to zero */
#define MOST_KINDS 64   /* of places: each kind doubles the states at least, and how many these are is an int64 */

/* How many items or places there are of each kind. */
typedef struct {
    const int64_t *count;
    int64_t size;
} Kinds;

/* The largest over the smallest prior of a value among the signatures of a group; infinite with a zero. */
static inline double spread_of(const double *p, int64_t values, int64_t value, const int64_t *code, int64_t low,
                               int64_t high)
{
    double least = INFINITY, most = 0.0;
    for (int64_t i = low; i < high; i++) {
        const double chance = p[code[i] * values + value];
        least = chance < least ? chance : least;
        most = chance > most ? chance : most;
    }
    return least > 0.0 ? most / least : INFINITY;
}

/* One over the bound on the posterior of any value in each group, at least 1. `spread` has room for the values of any
   group. */
LOOP void robustness_bound_groups(const Array *of_n, const Array *of_start, const Array *of_value,
                                  const Array *of_count, const Array *of_sig_start, const Array *of_code,
                                  const Array *of_p, const Array *of_inverse, const Array *of_spread)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, sig_start);
    IN(int64_t, code);
    IN(double, p);
    OUT(double, inverse);
    OUT(double, spread);
    for (int64_t g = 0; g < SIZE(n); g++) {
        const int64_t low = start[g], high = start[g + 1];
        double top = 1.0, second = 1.0;
        int64_t widest = -1;
        for (int64_t e = low; e < high; e++) {
            const double wide = spread_of(p, COLUMNS(p), value[e], code, sig_start[g], sig_start[g + 1]);
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
            const double found = (1.0 + (double)(n[g] - 1) / (spread[e - low] * other)) / (double)count[e];
            least = found < least ? found : least;
        }
        inverse[g] = least < 1.0 ? 1.0 : least;
    }
}

/* The same for each value asked about, which stands against all others together. */
LOOP void robustness_bound_values(const Array *of_group, const Array *of_entry, const Array *of_n,
                                  const Array *of_value, const Array *of_count, const Array *of_sig_start,
                                  const Array *of_code, const Array *of_yes, const Array *of_no,
                                  const Array *of_inverse)
{
    IN(int64_t, group);
    IN(int64_t, entry);
    IN(int64_t, n);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, sig_start);
    IN(int64_t, code);
    IN(double, yes);
    IN(double, no);
    OUT(double, inverse);
    for (int64_t i = 0; i < SIZE(group); i++) {
        const int64_t g = group[i], x = value[entry[i]], c = count[entry[i]];
        inverse[i] = 1.0;
        if (c < n[g]) {
            double wide = spread_of(yes, COLUMNS(yes), x, code, sig_start[g], sig_start[g + 1]);
            wide *= spread_of(no, COLUMNS(no), x, code, sig_start[g], sig_start[g + 1]);
            const double found = (1.0 + (double)(n[g] - 1) / wide) / (double)c;
            inverse[i] = found < 1.0 ? 1.0 : found;
        }
    }
}

/* The next state in mixed radix; returns by how much the number of items placed changes. */
static inline int64_t next(const int64_t *most, int64_t *used)
{
    int64_t change = 1, b = 0;
    while (used[b] == most[b]) {
        change -= used[b];
        used[b++] = 0;
    }
    used[b]++;
    return change;
}

static inline int64_t previous(const int64_t *most, int64_t *used)
{
    int64_t change = -1, b = 0;
    while (used[b] == 0) {
        used[b] = most[b];
        change += most[b++];
    }
    used[b]--;
    return change;
}

/* Adds to weight[a, b] the weights of all worlds in which an item of kind a goes to a place of kind b. (`hand_out` of
   r_robustness.py does the same in exact numbers.)

   `items` lists the kind of every item in ascending order, most[b] is the number of places of kind b, as many in all
   as items; a world has the product of its w[a, b] as weight. A state says how many places of each kind the first
   items have filled; forward[state] adds up the ways to get there, backward[state] those to go on to the end. */
static void hand_out(const int64_t *items, int64_t n, Kinds most, const double *w, double *forward, double *backward,
                     double *weight)
{
    int64_t stride[MOST_KINDS], used[MOST_KINDS], size = 1, placed = 0;
    for (int64_t b = 0; b < most.size; b++) {
        stride[b] = size;
        used[b] = 0;
        size *= most.count[b] + 1;
    }
    forward[0] = 1.0;
    for (int64_t at = 1; at < size; at++) {
        placed += next(most.count, used);
        const double *const row = w + items[placed - 1] * most.size;
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
        const double *const row = w + a * most.size;
        double *const sums = weight + a * most.size;
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
static bool balance(Kinds kinds, Kinds most, double *w)
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
        double *const row = w + a * most.size;
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

static inline int64_t sum(Kinds kinds)
{
    int64_t total = 0;
    for (int64_t a = 0; a < kinds.size; a++)
        total += kinds.count[a];
    return total;
}

/* One over the largest posterior of the first `asked` values; nan if no world has a weight worth its name. */
static double inverse_of(Kinds kinds, Kinds most, double *w, double *forward, double *backward, int64_t *items,
                         double *weight, int64_t asked, bool by_people)
{
    const int64_t n = sum(kinds);
    if (n != sum(most) || !balance(kinds, most, w))
        return NAN;
    for (int64_t a = 0, at = 0; a < kinds.size; a++)
        for (const int64_t end = at + kinds.count[a]; at < end; at++)
            items[at] = a;
    for (int64_t cell = 0; cell < kinds.size * most.size; cell++)
        weight[cell] = 0.0;
    hand_out(items, n, most, w, forward, backward, weight);
    double largest = 0.0;
    for (int64_t a = 0; a < kinds.size; a++) {
        const double *const row = weight + a * most.size;
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
   than limit, or no worlds.

   What fits the limit has fewer items than states, thus fewer kinds of them, and no more kinds of places than the limit
   has binary digits: `forward`, `backward` and `items` have room for limit numbers, `w` and `weight` for limit times
   the digits. */
LOOP void robustness_largest_posteriors(const Array *of_group, const Array *of_entry, const Array *of_n,
                                        const Array *of_start, const Array *of_value, const Array *of_count,
                                        const Array *of_sig_start, const Array *of_code, const Array *of_sig_count,
                                        const Array *of_yes, const Array *of_no, int64_t limit,
                                        const Array *of_inverse, const Array *of_forward, const Array *of_backward,
                                        const Array *of_items, const Array *of_w, const Array *of_weight)
{
    IN(int64_t, group);
    IN(int64_t, entry);
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, sig_start);
    IN(int64_t, code);
    IN(int64_t, sig_count);
    IN(double, yes);
    IN(double, no);
    OUT(double, inverse);
    OUT(double, forward);
    OUT(double, backward);
    OUT(int64_t, items);
    OUT(double, w);
    OUT(double, weight);
    for (int64_t i = 0; i < SIZE(group); i++) {
        const int64_t g = group[i], e = entry[i];
        const Kinds people = {sig_count + sig_start[g], sig_start[g + 1] - sig_start[g]};
        Kinds copies = {count + start[g], start[g + 1] - start[g]};
        int64_t pair[2];
        inverse[i] = NAN;
        if (e >= 0) {
            if (count[e] == n[g]) {
                inverse[i] = 1.0;
                continue;
            }
            pair[0] = count[e];
            pair[1] = n[g] - count[e];
            copies = (Kinds){pair, 2};
        }
        const bool by_people = states(copies, limit) <= states(people, limit);
        const Kinds kinds = by_people ? people : copies, most = by_people ? copies : people;
        if (states(most, limit) > limit)
            continue;
        for (int64_t s = 0; s < people.size; s++) { /* the priors of the group, one row for each kind of item */
            const int64_t row = code[sig_start[g] + s];
            for (int64_t v = 0; v < copies.size; v++) {
                const int64_t x = value[e < 0 ? start[g] + v : e];
                const double p = e < 0 || v == 0 ? yes[row * COLUMNS(yes) + x] : no[row * COLUMNS(no) + x];
                w[by_people ? s * most.size + v : v * most.size + s] = p;
            }
        }
        inverse[i] = inverse_of(kinds, most, w, forward, backward, items, weight, e < 0 ? copies.size : 1, by_people);
    }
}
