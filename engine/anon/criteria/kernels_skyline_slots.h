/* What the kernels of the skyline criterion share: the slots of its state, and the figures of a group. */
#ifndef ANON_CRITERIA_KERNELS_SLOTS_H
#define ANON_CRITERIA_KERNELS_SLOTS_H

#include "criteria/kernels_skyline.h"

enum { STATISTICS = 5 }; /* SS1 to SS5, of every slot */

/* What is known about a slot: columns of `knowledge`, the last one where its l is among all. */
enum { L, K, M, DEPTH, COLUMNS_OF_KNOWLEDGE };

/* The slots of each value, of[start[value]:start[value + 1]], and what is known about each slot. */
typedef struct {
    ARRAY(const int64_t) start, of, knowledge;
    int64_t values, size, deepest; /* the largest l */
} Slots;

static inline int64_t take_Slots(Call *call, Slots *slots)
{
    IN(int64_t, start, AT_LEAST(1));
    IN(int64_t, of, start[SIZE(start) - 1]);
    IN(int64_t, knowledge, ANY, COLUMNS_OF_KNOWLEDGE);
    int64_t deepest = 0;
    for (int64_t slot = 0; slot < SIZE(knowledge); slot++)
        deepest = greater(deepest, knowledge[slot * COLUMNS_OF_KNOWLEDGE + L]);
    const Slots taken = {start, of, knowledge, SIZE(start) - 1, SIZE(knowledge), deepest};
    *slots = taken;
    return 0;
}

static inline ARRAY(const int64_t) known_of(const Slots *slots, int64_t slot)
{
    return slots->knowledge + slot * COLUMNS_OF_KNOWLEDGE;
}

/* Scratch space for the largest counts of a group, one more than the largest l, and for those without one of them. */
typedef struct {
    ARRAY(int64_t) top, others;
    int64_t size;
} Largest;

/* SS1 to SS5 of a group alone. */
static inline void fill_figures(int64_t kind, int64_t n, int64_t s, ARRAY(const int64_t) known,
                                ARRAY(const int64_t) others, ARRAY(double) figures)
{
    const int64_t l = known[L], k = known[K], m = known[M];
    RuledOut ruled_out = nothing_ruled_out();
    for (int64_t i = 0; i < l; i++)
        rule_out(kind, n, others[i], &ruled_out);
    const double left = left_of(kind, n, s, &ruled_out);
    figures[1] = target(kind, n, s, left, 0);
    figures[2] = target(kind, n, s, left, k);
    figures[3] = family(kind, n, s, m, 0);
    figures[4] = family(kind, n, s, m, k);
    figures[0] = figures[2] * family(kind, n, s, m, k + 1);
}

#endif
