/* The proximity criteria: neighbourhoods of the values of a group, and the distance of its distribution to a
   reference. */
#include "criteria/kernels_counts.h"

/* Puts the entries of each group into the order of their places, in time linear in both: all entries by place, then
   each to its group. `at` has a zero for each place and one more, `cursor` is a copy of `start`, and `group` and
   `entry` have room for all entries. */
KERNEL(proximity_sort_places)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, place, start[SIZE(start) - 1]);
    IN(int64_t, count, SIZE(place));
    INTEGER(places);
    REQUIRE(places >= 0);
    OUT(int64_t, out_place, SIZE(place));
    OUT(int64_t, out_count, SIZE(place));
    OUT(int64_t, at, places + 1);
    OUT(int64_t, cursor, SIZE(start));
    OUT(int64_t, group, SIZE(place));
    OUT(int64_t, entry, SIZE(place));
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
    return 0;
}

/* The largest count of a group within low[p]..high[p] around any place p in it. Places ascend in every group; low and
   high never descend, so that each end of the window only moves forward. */
KERNEL(proximity_largest_window)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, place, start[SIZE(start) - 1]);
    IN(int64_t, count, SIZE(place));
    IN(int64_t, low, ANY);
    IN(int64_t, high, SIZE(low));
    OUT(int64_t, out, SIZE(start) - 1);
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
    return 0;
}

/* Whether a code is among the ascending codes[low:high]. */
static inline bool among(ARRAY(const int64_t) codes, int64_t low, int64_t high, int64_t code)
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
KERNEL(proximity_largest_listed)
{
    Groups groups;
    TAKE(Groups, &groups);
    IN(int64_t, near_start, AT_LEAST(1));
    IN(int64_t, near, near_start[SIZE(near_start) - 1]);
    OUT(int64_t, out, groups.size);
    OUT(int64_t, held, SIZE(near_start) - 1);
    const ARRAY(const int64_t) start = groups.start, value = groups.value, count = groups.count;
    for (int64_t g = 0; g < groups.size; g++) {
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
    return 0;
}

/* Per group the sum over levels and nodes of |share in the group - share in the reference|, over twice the levels.

   On each level the reference sums to 1, so that only nodes the group has need a look. `held` has a zero for each node
   of a level. */
KERNEL(proximity_distance_in_tree)
{
    Groups groups;
    TAKE(Groups, &groups);
    IN(int64_t, node, ANY, ANY);
    IN(double, share, SIZE(node), ANY);
    OUT(double, out, groups.size);
    OUT(int64_t, held, COLUMNS(share));
    const ARRAY(const int64_t) value = groups.value, count = groups.count;
    const int64_t levels = SIZE(node);
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t begin = groups.start[g], end = groups.start[g + 1];
        const double people = (double)groups.n[g];
        double total = 0.0;
        for (int64_t level = 0; level < levels; level++) {
            const ARRAY(const int64_t) nodes = node + level * COLUMNS(node);
            const ARRAY(const double) shares = share + level * COLUMNS(share);
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
    return 0;
}

static inline int64_t first_above(ARRAY(const double) share, int64_t low, int64_t high, double bound)
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
KERNEL(proximity_distance_on_line)
{
    Groups groups;
    TAKE(Groups, &groups); /* with places for values */
    IN(double, share, AT_LEAST(1));
    IN(double, length, SIZE(share));
    IN(double, area, SIZE(share));
    OUT(double, out, groups.size);
    const ARRAY(const int64_t) start = groups.start;
    const int64_t last = SIZE(share) - 1;
    for (int64_t g = 0; g < groups.size; g++) {
        int64_t at = 0, people = 0;
        double total = 0.0;
        for (int64_t e = start[g]; e <= start[g + 1]; e++) {
            const bool within = e < start[g + 1];
            const int64_t end = within ? groups.value[e] : last;
            const double own = (double)people / (double)groups.n[g];
            const int64_t cross = first_above(share, at, end, own);
            total += own * (length[cross] - length[at]) - (area[cross] - area[at]);
            total += (area[end] - area[cross]) - own * (length[end] - length[cross]);
            at = end;
            if (within)
                people += groups.count[e];
        }
        out[g] = total < 0.0 ? 0.0 : total;
    }
    return 0;
}

/* The population variance of each group, in two passes. */
KERNEL(proximity_variances)
{
    Groups groups;
    TAKE(Groups, &groups);
    IN(double, number, groups.start[groups.size]);
    OUT(double, out, groups.size);
    const ARRAY(const int64_t) count = groups.count;
    for (int64_t g = 0; g < groups.size; g++) {
        const int64_t begin = groups.start[g], end = groups.start[g + 1];
        const double people = (double)groups.n[g];
        double total = 0.0, squares = 0.0;
        for (int64_t e = begin; e < end; e++)
            total += (double)count[e] * number[e];
        const double mean = total / people;
        for (int64_t e = begin; e < end; e++)
            squares += (double)count[e] * (number[e] - mean) * (number[e] - mean);
        out[g] = squares / people;
    }
    return 0;
}
