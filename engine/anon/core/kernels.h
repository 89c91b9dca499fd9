/* What all kernels share: how they take their arguments, and how they access arrays.

   Python calls a kernel with numpy arrays, integers and floats (kernels.py). The kernel takes them in order at its
   top, and these lines are the only declaration that it has:

       KERNEL(search_step)
       {
           IN(uint16_t, codes, ANY, ANY);     an array that is read: type of the numbers, name, size of each dimension
           IN(uint32_t, child, AT_LEAST(1));
           OUT(uint32_t, node, COLUMNS(codes));     an array that is written to
           INTEGER(people);
           REQUIRE(people < SIZE(codes));
           ...

   An argument of another type or size is refused before the kernel does anything, and Python raises an error. Numbers
   in an array that are used as an index are not checked, except where a REQUIRE does: `make sanitize` checks them all.
   Kernels allocate nothing: scratch space is an argument too, except for a few hundred counters on the stack. They run
   without the interpreter lock. A kernel returns 0 or a count.

   Arrays are declared as ARRAY(type), an ordinary pointer. `make sanitize` compiles the same code as C++, where it is a
   class that checks every index (kernels_checked.h). */
#ifndef ANON_KERNELS_H
#define ANON_KERNELS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REFUSED = -1, MOST_DIMENSIONS = 4 };

/* The beginning of numpy's array object (PyArrayObject_fields); kernels.py verifies it before any call. */
typedef struct {
    void *head[2];
    void *data;
    int dimensions;
    const intptr_t *shape, *strides;
    void *base, *type;
    int flags;
} ArrayObject;

enum { CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 }; /* numpy's flags */

typedef union {
    const ArrayObject *array;
    int64_t integer;
    double number;
} Argument;

/* The reason why a call was refused, for the message. `type` is the expected C type of an array, or a condition. */
typedef struct {
    const char *name, *type;
    int64_t place, dimensions, shape[MOST_DIMENSIONS];
    int64_t is_size, is_written; /* the type was right, the size was not; an array that is written to */
} Refusal;

/* The arguments of a call. `kinds` has a letter for each: the type of an array, INTEGER_KIND or NUMBER_KIND. */
typedef struct {
    const char *kernel, *kinds;
    const Argument *arguments;
    int64_t taken;
    Refusal *refusal; /* NULL if the caller does not need the reason */
} Call;

enum { INTEGER_KIND = '#', NUMBER_KIND = '.' };

#ifdef __cplusplus
#define KERNEL_LINKAGE extern "C" __attribute__((visibility("default")))
#else
#define KERNEL_LINKAGE __attribute__((visibility("default")))
#endif
#define SHARED __attribute__((noinline, unused))

/* Begins the definition of a kernel. */
#define KERNEL(name)                                                                                                   \
    static int64_t name##_body(Call *call);                                                                            \
    KERNEL_LINKAGE int64_t name(const char *kinds, const Argument *arguments, Refusal *refusal)                        \
    {                                                                                                                  \
        Call call = {#name, kinds, arguments, 0, refusal};                                                             \
        const int64_t result = name##_body(&call);                                                                     \
        if (result == REFUSED || kinds[call.taken] == '\0')                                                            \
            return result;                                                                                             \
        return refuse(&call, "", "no further arguments"), REFUSED;                                                     \
    }                                                                                                                  \
    static int64_t name##_body(Call *call)

#define ANY AT_LEAST(0) /* size of a dimension */
#define AT_LEAST(size) (INT64_MIN + (int64_t)(size))
#define IN(type, name, ...) TAKE_ARRAY(const type, type, name, false, __VA_ARGS__)
#define OUT(type, name, ...) TAKE_ARRAY(type, type, name, true, __VA_ARGS__)
#define SIZE(name) name##_size       /* of a vector, or the rows of a matrix */
#define COLUMNS(name) name##_columns /* of a matrix */
#define TAKE_ARRAY(element, type, name, written, ...)                                                                  \
    const int64_t name##_shape[] = {__VA_ARGS__};                                                                      \
    const ArrayObject *const name##_object =                                                                           \
        take_array(call, #name, #type, KIND(type), written, name##_shape, sizeof name##_shape / sizeof(int64_t));      \
    if (name##_object == NULL)                                                                                         \
        return REFUSED;                                                                                                \
    const int64_t name##_size __attribute__((unused)) = name##_object->shape[0];                                       \
    const int64_t name##_columns __attribute__((unused)) = name##_object->shape[name##_object->dimensions > 1];        \
    const ARRAY(element) name = VIEW(element, name)
#define INTEGER(name)                                                                                                  \
    const int64_t name = take_word(call, #name, INTEGER_KIND).integer;                                                 \
    if (call->taken < 0)                                                                                               \
        return REFUSED
#define NUMBER(name)                                                                                                   \
    const double name = take_word(call, #name, NUMBER_KIND).number;                                                    \
    if (call->taken < 0)                                                                                               \
        return REFUSED
#define REQUIRE(condition)                                                                                             \
    if (!(condition))                                                                                                  \
    return refuse(call, "", #condition), REFUSED
/* Takes the members of a struct as arguments, by its function take_STRUCT. */
#define TAKE(struct, ...)                                                                                              \
    if (take_##struct(call, __VA_ARGS__) == REFUSED)                                                                   \
    return REFUSED

static SHARED void refuse(Call *call, const char *name, const char *type)
{
    if (call->refusal != NULL) {
        const Refusal refusal = {name, type, call->taken, 0, {0}, 0, 0};
        *call->refusal = refusal;
    }
    call->taken = REFUSED;
}

/* Returns the next argument, an integer or a float; taken < 0 if it is something else. */
static SHARED Argument take_word(Call *call, const char *name, char kind)
{
    Argument none = {NULL};
    if (call->kinds[call->taken] == kind)
        return call->arguments[call->taken++];
    refuse(call, name, kind == INTEGER_KIND ? "an integer" : "a float");
    return none;
}

/* Returns the next argument, an array with numbers of the given type and with the given size in each dimension; NULL
   if it is something else. */
static SHARED const ArrayObject *take_array(Call *call, const char *name, const char *type, char kind,
                                                  bool written, const int64_t *shape, int64_t dimensions)
{
    const int needed = CONTIGUOUS | ALIGNED | (written ? WRITEABLE : 0);
    bool right_type = call->kinds[call->taken] == kind, right_size = right_type;
    if (right_type) {
        const ArrayObject *const array = call->arguments[call->taken].array;
        right_type = array->dimensions == dimensions && (array->flags & needed) == needed;
        for (int64_t i = 0; right_type && i < dimensions; i++) /* an AT_LEAST is below all sizes */
            right_size &= array->shape[i] == shape[i] || AT_LEAST(array->shape[i]) >= shape[i];
        if (right_type && right_size) {
            call->taken++;
            return array;
        }
    }
    if (call->refusal != NULL) {
        Refusal refusal = {name, type, call->taken, dimensions, {0}, right_type, written};
        for (int64_t i = 0; i < dimensions; i++)
            refusal.shape[i] = shape[i];
        *call->refusal = refusal;
    }
    call->taken = REFUSED;
    return NULL;
}

#ifdef ANON_BOUNDS
#include "core/kernels_checked.h"
#else
#define ARRAY(type) __typeof__(type *)
#define VIEW(type, name) ((type *)name##_object->data)
/* A plain pointer, for instructions that access several numbers at once. */
#define SPAN(array, first, length) ((array) + (first))
/* The letter of Python's struct module. */
#define KIND(type)                                                                                                     \
    _Generic((type)0, bool: '?', int8_t: 'b', uint8_t: 'B', int16_t: 'h', uint16_t: 'H', int32_t: 'i', uint32_t: 'I',  \
             int64_t: 'q', uint64_t: 'Q', float: 'f', double: 'd')
#endif

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
