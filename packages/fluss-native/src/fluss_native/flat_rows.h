/* Flattens one row to cells and runs, as fluss.records.convert.flat_values describes them. */
#ifndef FLUSS_NATIVE_FLAT_ROWS_H
#define FLUSS_NATIVE_FLAT_ROWS_H

#include "plain_values.h"

typedef enum { TAKEN, LEFT, FAILED } Outcome; /* LEFT: to the pure function */

/* The names of the values of a row, and where they were in the last dict. */
struct Names {
    Py_ssize_t count;
    PyObject *places;      /* a dict: the place of each name */
    PyObject **last_keys;  /* the keys of the last dict in their order, or NULL */
    Py_ssize_t *last_places;
};

/* References that are owned. */
typedef struct {
    PyObject **items;
    Py_ssize_t count, capacity;
} Objects;

/* The cells and runs of one row, while it is converted. */
typedef struct {
    Objects cells;
    Py_ssize_t run_count;
    Objects *runs;
    Py_ssize_t size; /* about, in bytes */
} FlatRow;

Names *names_new(PyObject *names);
int names_traverse(const Names *names, visitproc visit, void *arg);
void names_free(Names *names);

FlatRow *flat_row_new(Py_ssize_t run_count);
void flat_row_clear(FlatRow *row); /* forgets its values, and memory of large rows */
void flat_row_free(FlatRow *row);

/* Find the values of a row, which are as many as there are names: new references, NULL for a name
 * that a dict does not have. */
Outcome row_values(Names *names, PyObject *row, PyObject **values);

/* Convert a value and add it to a row. */
Outcome flatten(const Type *type, PyObject *value, FlatRow *row);

#endif
