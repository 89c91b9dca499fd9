/* The papers' dynamic programs, which check_baseline.py holds the engine against. They hand pieces of knowledge to one
   group after the other; compiled as the engine's loops are. */
#include "criteria/kernels_ck.c"

static inline double least(double a, double b) { return a < b ? a : b; }

/* The part of `people` that stays without `named` of them. */
static inline double left(int64_t people, int64_t named)
{
    return (double)greater(people - named, 0) / (double)greater(people, 1);
}

/* The paper's MINIMIZE1 without recursion: fills chance[h], h = 0..most. table[i, limit, atoms], people from the last
   to the first. */
static void minimize1(int64_t n, const int64_t *top, int64_t most, double *table, double *chance)
{
    const int64_t columns = most + 1, rows = columns * columns;
    for (int64_t i = 0; i < columns * rows; i++)
        table[i] = 1.0;
    for (int64_t i = lesser(most, n) - 1; i >= 0; i--) {
        int64_t named = 0;
        for (int64_t limit = 1; limit <= most; limit++) {
            named += top[limit - 1];
            const double factor = left(n - i, named);
            double *const own = table + i * rows + limit * columns;
            const double *const lower = own - columns, *const next = own + rows - limit;
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
   figures from the engine's recurrence. `table`, `product` and `chance` have room for k + 2 figures in each dimension,
   `missing` and `placed` for k + 1. */
LOOP double programs_minimize2(const Array *of_n, const Array *of_top, int64_t ours, const Array *of_table,
                               const Array *of_product, const Array *of_chance, const Array *of_missing,
                               const Array *of_placed)
{
    IN(int64_t, n);
    IN(int64_t, top);
    OUT(double, table);
    OUT(double, product);
    OUT(double, chance);
    OUT(double, missing);
    OUT(double, placed);
    const int64_t most = COLUMNS(top), k = most - 1;
    for (int64_t j = 0; j <= k; j++) {
        missing[j] = INFINITY;
        placed[j] = 1.0;
    }
    for (int64_t g = 0; g < SIZE(n); g++) {
        const int64_t *const own = top + g * most;
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
    return missing[k];
}

/* figures[g, 0, u, v] with the target, u known people and a family of v, figures[g, 1, u, v] without the target. */
LOOP void programs_skyline_figures(const Array *of_n, const Array *of_s, const Array *of_others,
                                   const Array *of_figures)
{
    IN(int64_t, n);
    IN(int64_t, s);
    IN(int64_t, others);
    OUT(double, figures);
    const int64_t rows = of_figures->shape[2], columns = of_figures->shape[3];
    for (int64_t g = 0; g < SIZE(n); g++) {
        for (int64_t u = 0; u < rows; u++) {
            double *const first = figures + (2 * g * rows + u) * columns, *const second = first + rows * columns;
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
}

/* The least negated ratio over all ways to hand the target, k known people and a family of m to the groups; figures of
   the kind[g]-th kind are those of group g. `missing` and `placed` have room for k + 1 times m + 1 figures: without the
   target, and with it. */
LOOP double programs_distribute(const Array *of_kind, const Array *of_figures, const Array *of_missing,
                                const Array *of_placed)
{
    IN(int64_t, kind);
    IN(double, figures);
    OUT(double, missing);
    OUT(double, placed);
    const int64_t k = of_figures->shape[2] - 1, m = of_figures->shape[3] - 1, columns = m + 1;
    const int64_t cells = (k + 1) * columns;
    for (int64_t i = 0; i < cells; i++)
        missing[i] = placed[i] = INFINITY;
    missing[0] = 1.0;
    for (int64_t g = 0; g < SIZE(kind); g++) {
        const double *const target = figures + 2 * kind[g] * cells, *const others = target + cells;
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
    return placed[cells - 1];
}
