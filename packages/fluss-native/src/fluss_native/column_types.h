/* Reads the description of a column that fluss.write.native_taker makes, a tuple. */
#ifndef FLUSS_NATIVE_COLUMN_TYPES_H
#define FLUSS_NATIVE_COLUMN_TYPES_H

#include "flat_rows.h"

/* Read a description; `runs` counts the runs of all columns. -1 with an error set; then, too, the
 * type is to be cleared. */
int type_read(Type *type, PyObject *description, Py_ssize_t *runs);
int type_traverse(const Type *type, visitproc visit, void *arg);
void type_clear(Type *type);

#endif
