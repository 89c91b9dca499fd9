/* The papers' dynamic programs, which check_baseline.py holds the engine against. They hand pieces of knowledge to one
   group after the other; compiled as the engine's kernels are. */
#include "criteria/kernels_ck.c"

static inline double least(double a, double b) { return a < b ? a : b; }

/* The part of `people` that stays without `named` of them. */
static inline double left(int64_t people, int64_t named)
{
    return (double)greater(people - named, 0) / (double)greater(people, 1);
}

/* The paper's MINIMIZE1 without recursion: fills chance[h], h = 0..most. table[i, limit, atoms], people from the last
   to the first. */
static void minimize1(int64_t n, ARRAY(const int64_t) top, int64_t most, ARRAY(double) table, ARRAY(double) chance)
{
    const int64_t columns = most + 1, rows = columns * columns;
    for (int64_t i = 0; i < columns * rows; i++)
        table[i] = 1.0;
    for (int64_t i = lesser(most, n) - 1; i >= 0; i--) {
        int64_t named = 0;
        for (int64_t limit = 1; limit <= most; limit++) {
            named += top[limit - 1];
            const double factor = left(n - i, named);
            const ARRAY(double) own = table + i * rows + limit * columns;
            const ARRAY(const double) lower = own + -columns, next = own + (rows - limit);
            for (int64_t atoms = 1; atoms < limit; atoms++)
                own[atoms] = lower[atoms];
            for (int64_t atoms = limit; atoms <= most; atoms++)
                own[atoms] = least(lower[atoms], factor * next[atoms]);
        }
    }
    for (int64_t h = 0; h <= most; h++)
        chance[h] = table[h * columns + h];
}

/* The paper's MINIMIZE2 without recursion, from the k + 1 largest counts of each group; `ours` takes each group's
   figures from the engine's recurrence. The result goes to `ratio`; the rest is scratch space. */
KERNEL(programs_minimize2)
{
    IN(int64_t, n, ANY);
    IN(int64_t, top, SIZE(n), AT_LEAST(1));
    INTEGER(ours);
    const int64_t most = COLUMNS(top), k = most - 1;
    OUT(double, ratio, 1);
    OUT(double, table, most + 1, most + 1, most + 1);
    OUT(double, product, most + 1, most + 1);
    OUT(double, chance, most + 1);
    OUT(double, missing, most);
    OUT(double, placed, most);
    for (int64_t j = 0; j <= k; j++) {
        missing[j] = INFINITY;
        placed[j] = 1.0;
    }
    for (int64_t g = 0; g < SIZE(n); g++) {
        const ARRAY(const int64_t) own = top + g * most;
        if (ours)
            least_absences(n[g], own, most, product, chance);
        else
            minimize1(n[g], own, most, table, chance);
        const double odds = (double)n[g] / (double)own[0];
        for (int64_t j = k; j >= 0; j--) {
            double with_target = INFINITY, without = INFINITY;
            for (int64_t h = 0; h <= j; h++) {
                with_target = least(chance[h + 1] * odds * placed[j - h], with_target);
                with_target = least(chance[h] * missing[j - h], with_target);
                without = least(chance[h] * placed[j - h], without);
            }
            missing[j] = with_target;
            placed[j] = without;
        }
    }
    ratio[0] = missing[k];
    return 0;
}

/* figures[g, 0, u, v] with the target, u known people and a family of v, figures[g, 1, u, v] without the target. */
KERNEL(programs_skyline_figures)
{
    IN(int64_t, n, ANY);
    IN(int64_t, s, SIZE(n));
    IN(int64_t, others, SIZE(n));
    INTEGER(rows);
    INTEGER(columns);
    OUT(double, figures, SIZE(n), 2, rows, columns);
    for (int64_t g = 0; g < SIZE(n); g++) {
        for (int64_t u = 0; u < rows; u++) {
            const ARRAY(double) first = figures + (2 * g * rows + u) * columns, second = first + rows * columns;
            double with_target = INFINITY, without = 1.0;
            if (s[g] > 0)
                with_target = (double)greater(n[g] - s[g] - others[g] - u, 0) / (double)s[g];
            for (int64_t v = 0; v < columns; v++) {
                first[v] = with_target;
                second[v] = without;
                if (s[g] > 0) {
                    with_target *= left(n[g] - u - 1 - v, s[g]);
                    without *= left(n[g] - u - v, s[g]);
                }
            }
        }
    }
    return 0;
}

/* The least negated ratio over all ways to hand the target, k known people and a family of m to the groups; figures of
   the kind[g]-th kind are those of group g. The result goes to `ratio`; `missing` and `placed` are scratch
   space: without the target, and with it. */
KERNEL(programs_distribute)
{
    IN(int64_t, kind, ANY);
    INTEGER(k);
    INTEGER(m);
    IN(double, figures, ANY, 2, k + 1, m + 1);
    OUT(double, ratio, 1);
    OUT(double, missing, k + 1, m + 1);
    OUT(double, placed, k + 1, m + 1);
    const int64_t columns = m + 1, cells = (k + 1) * columns;
    for (int64_t i = 0; i < cells; i++)
        missing[i] = placed[i] = INFINITY;
    missing[0] = 1.0;
    for (int64_t g = 0; g < SIZE(kind); g++) {
        const ARRAY(const double) target = figures + 2 * kind[g] * cells, others = target + cells;
        for (int64_t u = k; u >= 0; u--) {
            for (int64_t v = m; v >= 0; v--) {
                double with_target = INFINITY, without = INFINITY;
                for (int64_t a = 0; a <= u; a++) {
                    for (int64_t b = 0; b <= v; b++) {
                        const int64_t here = a * columns + b, rest = (u - a) * columns + v - b;
                        if (missing[rest] < INFINITY) {
                            without = least(missing[rest] * others[here], without);
                            with_target = least(missing[rest] * target[here], with_target);
                        }
                        if (placed[rest] < INFINITY)
                            with_target = least(placed[rest] * others[here], with_target);
                    }
                }
                missing[u * columns + v] = without;
                placed[u * columns + v] = with_target;
            }
        }
    }
    ratio[0] = placed[cells - 1];
    return 0;
}
