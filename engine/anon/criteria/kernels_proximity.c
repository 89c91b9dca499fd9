/* The proximity criteria: neighbourhoods of the values of a group, and the distance of its distribution to a
   reference. */
#include "loops.h"

/* Puts the entries of each group into the order of their places, in time linear in both: all entries by place, then
   each to its group. `at` has a zero for each place and one more, `cursor` is a copy of `start`, and `group` and
   `entry` have room for all entries. */
LOOP void proximity_sort_places(const Array *of_start, const Array *of_place, const Array *of_count, int64_t places,
                                const Array *of_out_place, const Array *of_out_count, const Array *of_at,
                                const Array *of_cursor, const Array *of_group, const Array *of_entry)
{
    IN(int64_t, start);
    IN(int64_t, place);
    IN(int64_t, count);
    OUT(int64_t, out_place);
    OUT(int64_t, out_count);
    OUT(int64_t, at);
    OUT(int64_t, cursor);
    OUT(int64_t, group);
    OUT(int64_t, entry);
    for (int64_t e = 0; e < SIZE(place); e++)
        at[place[e] + 1]++;
    for (int64_t p = 0; p < places; p++)
        at[p + 1] += at[p];
    for (int64_t g = 0; g < SIZE(start) - 1; g++) {
        for (int64_t e = start[g], end = start[g + 1]; e < end; e++) {
            const int64_t to = at[place[e]]++;
            group[to] = g;
            entry[to] = e;
        }
    }
    for (int64_t i = 0; i < SIZE(place); i++) {
        const int64_t to = cursor[group[i]]++;
        out_place[to] = place[entry[i]];
        out_count[to] = count[entry[i]];
    }
}

/* The largest count of a group within low[p]..high[p] around any place p in it. Places ascend in every group; low and
   high never descend, so that each end of the window only moves forward. */
LOOP void proximity_largest_window(const Array *of_start, const Array *of_place, const Array *of_count,
                                   const Array *of_low, const Array *of_high, const Array *of_out)
{
    IN(int64_t, start);
    IN(int64_t, place);
    IN(int64_t, count);
    IN(int64_t, low);
    IN(int64_t, high);
    OUT(int64_t, out);
    for (int64_t g = 0; g < SIZE(out); g++) {
        const int64_t end = start[g + 1];
        int64_t first = start[g], last = first, inside = 0, largest = 0;
        for (int64_t e = first; e < end; e++) {
            while (last < end && place[last] <= high[place[e]])
                inside += count[last++];
            while (place[first] < low[place[e]])
                inside -= count[first++];
            largest = greater(largest, inside);
        }
        out[g] = largest;
    }
}

/* Whether a code is among the ascending codes[low:high]. */
static inline bool among(const int64_t *codes, int64_t low, int64_t high, int64_t code)
{
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (codes[middle] < code)
            low = middle + 1;
        else if (codes[middle] > code)
            high = middle;
        else
            return true;
    }
    return false;
}

/* The largest count of a group among the listed neighbours of any value in it: found in the list, or, where the list
   is longer than the group, one by one. `held` has a zero for each value. */
LOOP void proximity_largest_listed(const Array *of_start, const Array *of_value, const Array *of_count,
                                   const Array *of_near_start, const Array *of_near, const Array *of_out,
                                   const Array *of_held)
{
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, near_start);
    IN(int64_t, near);
    OUT(int64_t, out);
    OUT(int64_t, held);
    for (int64_t g = 0; g < SIZE(out); g++) {
        const int64_t begin = start[g], end = start[g + 1];
        int64_t largest = 0;
        for (int64_t e = begin; e < end; e++)
            held[value[e]] = count[e];
        for (int64_t e = begin; e < end; e++) {
            const int64_t low = near_start[value[e]], high = near_start[value[e] + 1];
            int64_t inside = 0;
            if (high - low <= 4 * (end - begin)) {
                for (int64_t i = low; i < high; i++)
                    inside += held[near[i]];
            } else {
                for (int64_t other = begin; other < end; other++)
                    if (among(near, low, high, value[other]))
                        inside += count[other];
            }
            largest = greater(largest, inside);
        }
        out[g] = largest;
        for (int64_t e = begin; e < end; e++)
            held[value[e]] = 0;
    }
}

/* Per group the sum over levels and nodes of |share in the group - share in the reference|, over twice the levels.

   On each level the reference sums to 1, so that only nodes the group has need a look. `held` has a zero for each node
   of a level. */
LOOP void proximity_distance_in_tree(const Array *of_n, const Array *of_start, const Array *of_value,
                                     const Array *of_count, const Array *of_node, const Array *of_share,
                                     const Array *of_out, const Array *of_held)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, value);
    IN(int64_t, count);
    IN(int64_t, node);
    IN(double, share);
    OUT(double, out);
    OUT(int64_t, held);
    const int64_t levels = SIZE(node);
    for (int64_t g = 0; g < SIZE(n); g++) {
        const int64_t begin = start[g], end = start[g + 1];
        const double people = (double)n[g];
        double total = 0.0;
        for (int64_t level = 0; level < levels; level++) {
            const int64_t *const nodes = node + level * COLUMNS(node);
            const double *const shares = share + level * COLUMNS(share);
            for (int64_t e = begin; e < end; e++)
                held[nodes[value[e]]] += count[e];
            total += 1.0;
            for (int64_t e = begin; e < end; e++) {
                const int64_t at = nodes[value[e]];
                if (held[at] > 0) {
                    total += fabs((double)held[at] / people - shares[at]) - shares[at];
                    held[at] = 0;
                }
            }
        }
        out[g] = (total < 0.0 ? 0.0 : total) / (double)(2 * levels);
    }
}

static inline int64_t first_above(const double *share, int64_t low, int64_t high, double bound)
{
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (share[middle] > bound)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Per group the area between its cumulative shares and those of the reference, over places in order.

   `share` is cumulative up to each place, `length` and `area` are the way to each place and the area under the
   reference up to it. Between two places that the group has, its own share is constant and the reference ascends, so
   that they cross once at most: two differences give the area there. */
LOOP void proximity_distance_on_line(const Array *of_n, const Array *of_start, const Array *of_place,
                                     const Array *of_count, const Array *of_share, const Array *of_length,
                                     const Array *of_area, const Array *of_out)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, place);
    IN(int64_t, count);
    IN(double, share);
    IN(double, length);
    IN(double, area);
    OUT(double, out);
    const int64_t last = SIZE(share) - 1;
    for (int64_t g = 0; g < SIZE(n); g++) {
        int64_t at = 0, people = 0;
        double total = 0.0;
        for (int64_t e = start[g]; e <= start[g + 1]; e++) {
            const bool within = e < start[g + 1];
            const int64_t end = within ? place[e] : last;
            const double own = (double)people / (double)n[g];
            const int64_t cross = first_above(share, at, end, own);
            total += own * (length[cross] - length[at]) - (area[cross] - area[at]);
            total += (area[end] - area[cross]) - own * (length[end] - length[cross]);
            at = end;
            if (within)
                people += count[e];
        }
        out[g] = total < 0.0 ? 0.0 : total;
    }
}

/* The population variance of each group, in two passes. */
LOOP void proximity_variances(const Array *of_n, const Array *of_start, const Array *of_count,
                              const Array *of_number, const Array *of_out)
{
    IN(int64_t, n);
    IN(int64_t, start);
    IN(int64_t, count);
    IN(double, number);
    OUT(double, out);
    for (int64_t g = 0; g < SIZE(n); g++) {
        const int64_t begin = start[g], end = start[g + 1];
        const double people = (double)n[g];
        double total = 0.0, squares = 0.0;
        for (int64_t e = begin; e < end; e++)
            total += (double)count[e] * number[e];
        const double mean = total / people;
        for (int64_t e = begin; e < end; e++)
            squares += (double)count[e] * (number[e] - mean) * (number[e] - mean);
        out[g] = squares / people;
    }
}
