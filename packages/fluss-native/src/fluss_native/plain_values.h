/* The types of columns, and the conversion of single values that need no Python code.
 *
 * A value is converted here only if it is of exactly the plain class of its column: then nothing
 * of the user's can run, so nothing changes and no other thread runs meanwhile. All other values
 * are left to the pure functions of fluss-core, which accept or refuse them.
 */
#ifndef FLUSS_NATIVE_PLAIN_VALUES_H
#define FLUSS_NATIVE_PLAIN_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef enum {
    KIND_BOOLEAN,
    KIND_INTEGER,
    KIND_DOUBLE,
    KIND_FLOAT,
    KIND_TEXT,
    KIND_BYTES,
    KIND_DATE,
    KIND_TIME,
    KIND_TIMESTAMP,
    KIND_CONVERTED, /* by a Python function */
    KIND_LIST,
    KIND_MAP,
    KIND_ROW,
} Kind;

typedef struct Names Names;

/* A column, or what a column holds: an element, a key, a value, a field. */
typedef struct Type {
    Kind kind;
    int is_nullable;
    int64_t low, high;      /* integers: the smallest and the largest */
    Py_ssize_t length;      /* texts: the most characters; bytes: exactly so many; -1: any */
    int is_ascii;           /* texts: others are left to the pure function */
    int is_counted;         /* texts and bytes: their length counts for the size of the row */
    int64_t per_second;     /* times: how many units a second has */
    int has_zone;           /* timestamps: UTC, or without a zone */
    int is_whole;           /* times: only those that their unit holds exactly */
    PyObject *convert;      /* converted: the function of a value, */
    PyObject *measure;      /* ... and that of its size, or NULL for none */
    Py_ssize_t child_count; /* lists: the element; maps: key and value; rows: the fields */
    struct Type *children;
    Names *names; /* rows: of the fields */
    Py_ssize_t run; /* lists and maps: their first run */
} Type;

/* Load what this file needs of the module datetime; -1 with an error set. */
int plain_values_load(void);

/* Convert a value that is no list, map or row, and add to `size` what it takes beyond the fixed
 * width of its column. Returns a new reference; NULL without an error for a value that is left to
 * the pure function, NULL with an error where Python code raised one that is not an Exception. */
PyObject *plain_value(const Type *type, PyObject *value, Py_ssize_t *size);

#endif
