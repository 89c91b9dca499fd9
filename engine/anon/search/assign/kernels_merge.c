/* The merge search: the bound of r-robustness on groups whose members have different priors, and the placing of people
   in existing groups.

   The priors are in one table, a row for each class of people with equal priors: for each prior first[i]..first[i] +
   values are the probabilities of the values, and if it is binary those of "not this value" follow; named[i, value]
   states which values it constrains. Members of group g are kind[g, :size[g]] (their class) and value[g, :size[g]]. */
#include "core/kernels.h"

typedef struct {
    ARRAY(const double) table;
    int64_t columns; /* of the table */
    ARRAY(const int64_t) first, binary;
    ARRAY(const uint8_t) named;
    ARRAY(const double) r;
    int64_t count, values; /* of priors, and of values */
} Priors;

static inline int64_t take_Priors(Call *call, Priors *priors)
{
    IN(double, table, ANY, ANY);
    IN(int64_t, first, AT_LEAST(1));
    IN(int64_t, binary, SIZE(first));
    IN(uint8_t, named, SIZE(first), ANY);
    IN(double, r, SIZE(first));
    const Priors taken = {table, COLUMNS(table), first, binary, named, r, SIZE(first), COLUMNS(named)};
    *priors = taken;
    return 0;
}

/* Returns the largest over the smallest probability of a column among some members; infinite with a zero. */
static inline double spread(const Priors *priors, ARRAY(const int64_t) kind, int64_t size, int64_t column)
{
    const ARRAY(const double) p = priors->table + column;
    const int64_t columns = priors->columns;
    double least = INFINITY, most = 0.0;
    for (int64_t i = 0; i < size; i++) {
        const double own = p[kind[i] * columns];
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    return least > 0.0 ? most / least : INFINITY;
}

/* Returns how often the value of a member occurs; 0 if a previous member has it. */
static inline int64_t copies(ARRAY(const int64_t) value, int64_t size, int64_t member)
{
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++) {
        if (value[i] == value[member]) {
            if (i < member)
                return 0;
            count++;
        }
    }
    return count;
}

/* Returns the slack of a group: the smallest over all priors of the r that the bound on its posteriors allows, divided
   by r; from 1 on the group is safe. One over the bound with C copies of a value is
   (1 + (size - 1) / (lam_x lam_o)) / C. */
static inline double slack(ARRAY(const int64_t) kind, ARRAY(const int64_t) value, int64_t size, const Priors *priors)
{
    const ARRAY(const int64_t) first = priors->first, binary = priors->binary;
    const int64_t values = priors->values;
    double least = INFINITY;
    for (int64_t prior = 0; prior < priors->count; prior++) {
        double top = 1.0, second = 1.0, pair = 1.0;
        int64_t most = 0;
        for (int64_t i = 0; i < size; i++) {
            const int64_t own = priors->named[prior * values + value[i]] ? copies(value, size, i) : 0;
            if (own == 0)
                continue;
            most = greater(most, own);
            const double wide = spread(priors, kind, size, first[prior] + value[i]);
            if (binary[prior]) {
                const double both = wide * spread(priors, kind, size, first[prior] + values + value[i]);
                pair = both > pair ? both : pair;
            } else if (wide > top) {
                second = top;
                top = wide;
            } else {
                second = wide > second ? wide : second;
            }
        }
        if (most == 0)
            continue; /* the prior constrains no value of the group */
        const double wide = binary[prior] ? pair : top * second;
        const double own = (1.0 + (double)(size - 1) / wide) / ((double)most * priors->r[prior]);
        least = own < least ? own : least;
    }
    return least;
}

/* Adds the members of a group to others. */
static inline int64_t join(ARRAY(int64_t) kind, ARRAY(int64_t) value, int64_t size, ARRAY(const int64_t) own_kind,
                           ARRAY(const int64_t) own_value, int64_t own_size)
{
    for (int64_t i = 0; i < own_size; i++) {
        kind[size + i] = own_kind[i];
        value[size + i] = own_value[i];
    }
    return size + own_size;
}

/* Finds groups that a person of class `own` with value x can join: tries `reach` of them in the given order, and merges
   each with others of the next `partners`, one after the other, while that raises the slack, until it is enough. Writes
   the groups to `taken` and returns their number, 0 if there are none; `best` is the largest slack that was found, and
   the number of members that were examined. Groups with size 0 no longer exist.
   Scratch space: `some`, two rows that are long enough for the members of two groups and one more. */
KERNEL(merge_place)
{
    OUT(int64_t, kind, ANY, ANY);
    OUT(int64_t, value, SIZE(kind), COLUMNS(kind));
    OUT(int64_t, size, SIZE(kind));
    IN(int64_t, order, ANY);
    INTEGER(own);
    INTEGER(x);
    Priors priors;
    TAKE(Priors, &priors);
    NUMBER(enough);
    INTEGER(reach);
    INTEGER(partners);
    OUT(int64_t, taken, AT_LEAST(1));
    OUT(double, best, 2);
    OUT(int64_t, some, 2, 2 * COLUMNS(kind) + 1);
    const int64_t room = COLUMNS(kind), groups = SIZE(order);
    const ARRAY(int64_t) some_kind = some, some_value = some + COLUMNS(some);
    best[0] = best[1] = 0.0;
    for (int64_t at = 0; at < lesser(reach, groups); at++) {
        const int64_t g = order[at];
        if (size[g] <= 0)
            continue;
        some_kind[0] = own;
        some_value[0] = x;
        int64_t n = join(some_kind, some_value, 1, kind + g * room, value + g * room, size[g]);
        if (n > room)
            continue;
        double now = slack(some_kind, some_value, n, &priors);
        best[1] += (double)n;
        int64_t count = 1;
        taken[0] = g;
        for (int64_t other = at + 1; other < lesser(at + 1 + partners, groups); other++) {
            if (now >= enough || count == SIZE(taken))
                break;
            const int64_t h = order[other];
            if (size[h] <= 0)
                continue;
            const int64_t more = join(some_kind, some_value, n, kind + h * room, value + h * room, size[h]);
            if (more > room)
                continue;
            const double then = slack(some_kind, some_value, more, &priors);
            best[1] += (double)more;
            if (then > now) {
                now = then;
                n = more;
                taken[count++] = h;
            }
        }
        best[0] = now > best[0] ? now : best[0];
        if (now >= enough) {
            for (int64_t i = 0; i < n; i++) {
                kind[g * room + i] = some_kind[i];
                value[g * room + i] = some_value[i];
            }
            size[g] = n;
            for (int64_t i = 1; i < count; i++)
                size[taken[i]] = 0;
            return count;
        }
    }
    return 0;
}
