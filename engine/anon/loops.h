/* What all loops share: how they see the arrays of numpy. Every loop that Python calls begins with LOOP, its name with
   that of its subject; an array is handed over as the object itself, in a parameter named after it with of_ before it,
   and opened by IN or OUT. Loops allocate nothing: what they need beside their arguments is handed over too, except for
   a few hundred counters on the stack. */
#ifndef ANON_LOOPS_H
#define ANON_LOOPS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an array of numpy begins, as every extension relies on. */
typedef struct {
    void *head[2];
    void *data;
    int dimensions;
    const int64_t *shape;
} Array;

#define LOOP __attribute__((visibility("default")))
#define IN(type, name) const type *const name = (const type *)of_##name->data
#define OUT(type, name) type *const name = (type *)of_##name->data
#define SIZE(name) (of_##name->shape[0])    /* of a vector, or the rows of a matrix */
#define COLUMNS(name) (of_##name->shape[1]) /* of a matrix */

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
