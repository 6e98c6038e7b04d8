/* The functions behind fluss.records.convert.to_python where it would make objects one by one.
 *
 * They get the elements of a column as lists, and where each value begins as an Arrow buffer. They
 * check all that they index by, so that wrong offsets are an error and never a wrong read.
 */
#include "columns.h"

#include <datetime.h>
#include <stdint.h>

#define MICROSECONDS 1000000
#define SECONDS_PER_DAY 86400
/* Days from 0000-03-01 to 1970-01-01, and of 400 years. */
#define DAYS_BEFORE 719468
#define DAYS_PER_ERA 146097
/* What datetime holds: the first day of the year 1, and the first one after the year 9999. */
#define FIRST_DAY (-719162)
#define DAY_AFTER 2932897

int columns_load(void)
{
    PyDateTime_IMPORT;
    return PyDateTimeAPI == NULL ? -1 : 0;
}

/* --- offsets ----------------------------------------------------------------------------------- */

typedef struct {
    Py_buffer buffer;
    const int32_t *items;
    Py_ssize_t length; /* how many values there are, one less than offsets */
} Offsets;

/* Get offsets that never decrease, and cover no more elements than there are. */
static int offsets_get(Offsets *offsets, PyObject *given, Py_ssize_t elements)
{
    if (PyObject_GetBuffer(given, &offsets->buffer, PyBUF_CONTIG_RO) < 0)
        return -1;
    offsets->items = offsets->buffer.buf;
    offsets->length = offsets->buffer.len / 4 - 1;
    int is_sound = offsets->buffer.itemsize == 4 && offsets->length >= 0;
    for (Py_ssize_t index = 0; is_sound && index < offsets->length; index++)
        is_sound = offsets->items[index] <= offsets->items[index + 1];
    if (is_sound)
        is_sound
            = (Py_ssize_t)offsets->items[offsets->length] - offsets->items[0] <= elements;
    if (is_sound)
        return 0;
    PyBuffer_Release(&offsets->buffer);
    PyErr_SetString(PyExc_ValueError, "the offsets of a column do not fit its elements");
    return -1;
}

/* --- lists and maps ---------------------------------------------------------------------------- */

/* The caller holds tuples, which nothing changes: an allocation may run any Python code. */
static PyObject *slice(PyObject *elements, Py_ssize_t start, Py_ssize_t length)
{
    PyObject *made = PyList_New(length);
    for (Py_ssize_t index = 0; made != NULL && index < length; index++)
        PyList_SET_ITEM(made, index, Py_NewRef(PyTuple_GET_ITEM(elements, start + index)));
    return made;
}

static PyObject *pairs(PyObject *keys, PyObject *values, Py_ssize_t start, Py_ssize_t length)
{
    PyObject *made = PyList_New(length);
    for (Py_ssize_t index = 0; made != NULL && index < length; index++) {
        PyObject *key = PyTuple_GET_ITEM(keys, start + index);
        PyObject *value = PyTuple_GET_ITEM(values, start + index);
        PyObject *pair = PyTuple_Pack(2, key, value);
        if (pair == NULL) {
            Py_CLEAR(made);
            break;
        }
        /* A pair of texts or numbers is in no cycle; the collector would find that later, and look
         * at the pair until then. */
        if (!PyObject_IS_GC(key) && !PyObject_IS_GC(value))
            PyObject_GC_UnTrack(pair);
        PyList_SET_ITEM(made, index, pair);
    }
    return made;
}

/* Cut the elements, or the pairs of keys and values, into a list for each value. */
static PyObject *cut(PyObject *keys, PyObject *values, PyObject *given)
{
    Offsets offsets;
    if (values != NULL && PyTuple_GET_SIZE(keys) != PyTuple_GET_SIZE(values)) {
        PyErr_SetString(PyExc_ValueError, "a map has as many keys as values");
        return NULL;
    }
    if (offsets_get(&offsets, given, PyTuple_GET_SIZE(keys)) < 0)
        return NULL;
    PyObject *made = PyList_New(offsets.length);
    for (Py_ssize_t index = 0; made != NULL && index < offsets.length; index++) {
        Py_ssize_t start = (Py_ssize_t)offsets.items[index] - offsets.items[0];
        Py_ssize_t length = (Py_ssize_t)offsets.items[index + 1] - offsets.items[index];
        PyObject *value = values == NULL ? slice(keys, start, length)
                                         : pairs(keys, values, start, length);
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, index, value);
    }
    PyBuffer_Release(&offsets.buffer);
    return made;
}

static PyObject *list_column(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *elements, *offsets;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &elements, &offsets))
        return NULL;
    return cut(elements, NULL, offsets);
}

static PyObject *map_column(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *keys, *values, *offsets;
    if (!PyArg_ParseTuple(
            arguments, "O!O!O", &PyTuple_Type, &keys, &PyTuple_Type, &values, &offsets))
        return NULL;
    return cut(keys, values, offsets);
}

/* --- times ------------------------------------------------------------------------------------- */

/* A day of the Gregorian calendar; years count from March here, as in plain_values.c. */
static void date_of(int64_t days, int *year, int *month, int *day)
{
    int64_t since = days + DAYS_BEFORE; /* never negative from the year 1 on */
    int64_t era = since / DAYS_PER_ERA, of_era = since % DAYS_PER_ERA;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t from_march = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
    *month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = (int)(400 * era + year_of_era + (*month <= 2));
}

static PyObject *utc_time(int64_t microseconds)
{
    int64_t seconds = microseconds / MICROSECONDS, fraction = microseconds % MICROSECONDS;
    if (fraction < 0) {
        fraction += MICROSECONDS;
        seconds--;
    }
    int64_t days = seconds / SECONDS_PER_DAY, of_day = seconds % SECONDS_PER_DAY;
    if (of_day < 0) {
        of_day += SECONDS_PER_DAY;
        days--;
    }
    if (days < FIRST_DAY || days >= DAY_AFTER) {
        PyErr_SetString(PyExc_OverflowError, "a time is not one that datetime can hold");
        return NULL;
    }
    int year, month, day;
    date_of(days, &year, &month, &day);
    return PyDateTimeAPI->DateTime_FromDateAndTime(year, month, day, (int)(of_day / 3600),
        (int)(of_day / 60 % 60), (int)(of_day % 60), (int)fraction, PyDateTime_TimeZone_UTC,
        PyDateTimeAPI->DateTimeType);
}

static PyObject *utc_column(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(given, &buffer, PyBUF_CONTIG_RO) < 0)
        return NULL;
    PyObject *made = NULL;
    if (buffer.itemsize != 8)
        PyErr_SetString(PyExc_ValueError, "times are counted in 64 bits");
    else
        made = PyList_New(buffer.len / 8);
    const int64_t *counts = buffer.buf;
    for (Py_ssize_t index = 0; made != NULL && index < buffer.len / 8; index++) {
        PyObject *value = utc_time(counts[index]);
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, index, value);
    }
    PyBuffer_Release(&buffer);
    return made;
}

PyMethodDef columns_functions[] = {
    { "list_column", list_column, METH_VARARGS, "Cut elements into lists." },
    { "map_column", map_column, METH_VARARGS, "Cut keys and values into lists of pairs." },
    { "utc_column", utc_column, METH_O, "Make times in UTC of microseconds since 1970." },
    { NULL, NULL, 0, NULL },
};
