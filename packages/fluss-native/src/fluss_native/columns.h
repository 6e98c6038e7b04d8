/* Makes the Python values of columns: lists, maps and times, which Python code makes one by one. */
#ifndef FLUSS_NATIVE_COLUMNS_H
#define FLUSS_NATIVE_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Load what this file needs of the module datetime; -1 with an error set. */
int columns_load(void);

extern PyMethodDef columns_functions[];

#endif
