/* Check that the library reads array objects of numpy correctly, for kernels.py. */
#include "core/kernels.h"

/* Returns whether an array object has these fields. Follows no pointer unless all other fields are as expected. */
KERNEL_LINKAGE int64_t kernels_read_correctly(const ArrayObject *array, int64_t data, int64_t dimensions, int64_t flags,
                                              const int64_t *shape)
{
    const int needed = CONTIGUOUS | ALIGNED | WRITEABLE;
    if ((int64_t)(intptr_t)array->data != data || array->dimensions != dimensions ||
        (array->flags & needed) != (flags & needed))
        return false;
    for (int64_t i = 0; i < dimensions; i++)
        if (array->shape[i] != shape[i])
            return false;
    return true;
}
