/* Arrays that check every index, for `make sanitize`: the kernels are compiled as C++ then, and ARRAY(type) is a class
   that behaves like a pointer, but ends the process with a message at an access outside of the array. Because it does
   not convert to a pointer implicitly, the compiler rejects every access that would bypass the check. */
#ifndef ANON_KERNELS_CHECKED_H
#define ANON_KERNELS_CHECKED_H

#include <stdio.h>
#include <stdlib.h>
#include <type_traits>

/* An index, and where in the code it is used. */
struct Index {
    int64_t value;
    const char *function;
    int line;

    template <class T>
    Index(T index, const char *function = __builtin_FUNCTION(), int line = __builtin_LINE())
        : value((int64_t)index), function(function), line(line)
    {
    }
};

template <class T> class Checked {
    template <class> friend class Checked;
    T *first;
    int64_t size, at; /* of the whole array; where this view of it begins */
    const char *name;

    Checked(T *first, int64_t size, int64_t at, const char *name) : first(first), size(size), at(at), name(name) {}

  public:
    Checked() : Checked(nullptr, 0, 0, "nothing") {}
    Checked(T *first, int64_t size, const char *name) : Checked(first, size, 0, name) {}
    template <class S, size_t length>
    Checked(S (&local)[length]) : Checked(local, (int64_t)length, 0, "a local array") {}
    template <class S, class = typename std::enable_if<std::is_same<const S, T>::value>::type>
    Checked(const Checked<S> &other) : Checked(other.first, other.size, other.at, other.name)
    {
    }

    /* Returns a pointer to `length` numbers from an index on. */
    T *span(Index index, int64_t length) const
    {
        const int64_t place = at + index.value;
        if (place < 0 || length < 0 || place > size - length) {
            fprintf(stderr, "%s, line %d: %s[%lld] is outside of its %lld numbers\n", index.function, index.line, name,
                    (long long)(length == 1 ? place : place + length - 1), (long long)size);
            abort();
        }
        return first + place;
    }

    T &operator[](Index index) const { return *span(index, 1); }
    Checked operator+(int64_t by) const { return Checked(first, size, at + by, name); }
    Checked &operator+=(int64_t by) { return at += by, *this; }
};

inline int64_t elements_of(const ArrayObject *array)
{
    int64_t elements = 1;
    for (int i = 0; i < array->dimensions; i++)
        elements *= array->shape[i];
    return elements;
}

template <class T> constexpr char kind_of()
{
    const char *const letters = std::is_signed<T>::value ? "bhiq" : "BHIQ";
    if (std::is_same<T, bool>::value)
        return '?';
    if (std::is_floating_point<T>::value)
        return sizeof(T) == 4 ? 'f' : 'd';
    return letters[sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
}

#define ARRAY(type) Checked<type>
#define VIEW(type, name) Checked<type>((type *)name##_object->data, elements_of(name##_object), #name)
#define SPAN(array, first, length) (array).span(first, length)
#define KIND(type) kind_of<type>()

#endif
