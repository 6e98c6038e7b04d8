/* Converts single values of the plain classes to physical values, as fluss.model.values does. */
#include "plain_values.h"

#include <datetime.h>

#define MICROSECONDS 1000000
#define SECONDS_PER_DAY 86400
#define EXACT_IN_DOUBLE ((int64_t)1 << 53)
#define EXACT_IN_FLOAT ((int64_t)1 << 24)

int plain_values_load(void)
{
    PyDateTime_IMPORT;
    return PyDateTimeAPI == NULL ? -1 : 0;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar; years count from March here, so that
 * a leap day is the last day of its year. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t years = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    int64_t day_of_year = (153 * months + 2) / 5 + day - 1;
    return 365 * years + years / 4 - years / 100 + years / 400 + day_of_year - 719468;
}

static PyObject *same(PyObject *value)
{
    Py_INCREF(value);
    return value;
}

/* The number of an exact int; 0 where it is none, or has more than 64 bits. */
static int int64_of(PyObject *value, int64_t *number)
{
    if (!PyLong_CheckExact(value))
        return 0;
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static PyObject *integer(const Type *type, PyObject *value)
{
    int64_t number;
    if (!int64_of(value, &number) || number < type->low || number > type->high)
        return NULL;
    return same(value);
}

static PyObject *floating(PyObject *value, int is_single)
{
    double wide;
    int64_t number, exact = is_single ? EXACT_IN_FLOAT : EXACT_IN_DOUBLE;
    if (PyFloat_CheckExact(value)) {
        if (!is_single)
            return same(value);
        wide = PyFloat_AS_DOUBLE(value);
    } else if (int64_of(value, &number) && -exact <= number && number <= exact) {
        wide = (double)number;
    } else {
        return NULL;
    }
    if (is_single) {
        double rounded = (double)(float)wide;
        if (Py_IS_INFINITY(rounded) && !Py_IS_INFINITY(wide))
            return NULL;
        wide = rounded;
    }
    return PyFloat_FromDouble(wide);
}

/* Whether a text has half a surrogate pair, which UTF-8 cannot hold. */
static int has_surrogate(PyObject *text)
{
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (kind == PyUnicode_1BYTE_KIND)
        return 0;
    for (Py_ssize_t index = 0; index < length; index++)
        if (Py_UNICODE_IS_SURROGATE(PyUnicode_READ(kind, data, index)))
            return 1;
    return 0;
}

static PyObject *text(const Type *type, PyObject *value, Py_ssize_t *size)
{
    if (!PyUnicode_CheckExact(value))
        return NULL;
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(value) < 0)
        return NULL;
#endif
    Py_ssize_t length = PyUnicode_GET_LENGTH(value);
    if (type->length >= 0 && length > type->length)
        return NULL;
    if (!PyUnicode_IS_ASCII(value) && (type->is_ascii || has_surrogate(value)))
        return NULL;
    *size += length;
    return same(value);
}

static PyObject *bytes(const Type *type, PyObject *value, Py_ssize_t *size)
{
    if (!PyBytes_CheckExact(value))
        return NULL;
    Py_ssize_t length = PyBytes_GET_SIZE(value);
    if (type->length >= 0 && length != type->length)
        return NULL;
    if (type->is_counted)
        *size += length;
    return same(value);
}

/* From microseconds to the unit of a column, rounded down; NULL where that is not allowed. */
static PyObject *scaled(const Type *type, int64_t microseconds)
{
    if (type->per_second >= MICROSECONDS) {
        int64_t factor = type->per_second / MICROSECONDS;
        int64_t limit = INT64_MAX / factor;
        if (microseconds > limit || microseconds < -limit)
            return NULL;
        return PyLong_FromLongLong(microseconds * factor);
    }
    int64_t divisor = MICROSECONDS / type->per_second;
    int64_t count = microseconds / divisor, rest = microseconds % divisor;
    if (rest != 0 && type->is_whole)
        return NULL;
    return PyLong_FromLongLong(rest < 0 ? count - 1 : count);
}

static PyObject *date(PyObject *value)
{
    if (!PyDate_CheckExact(value))
        return NULL;
    return PyLong_FromLongLong(days_since_1970(
        PyDateTime_GET_YEAR(value), PyDateTime_GET_MONTH(value), PyDateTime_GET_DAY(value)));
}

static PyObject *time_of_day(const Type *type, PyObject *value)
{
    if (!PyTime_CheckExact(value) || PyDateTime_TIME_GET_TZINFO(value) != Py_None)
        return NULL;
    int64_t seconds = PyDateTime_TIME_GET_HOUR(value) * 3600
        + PyDateTime_TIME_GET_MINUTE(value) * 60 + PyDateTime_TIME_GET_SECOND(value);
    return scaled(type, seconds * MICROSECONDS + PyDateTime_TIME_GET_MICROSECOND(value));
}

static PyObject *timestamp(const Type *type, PyObject *value)
{
    if (!PyDateTime_CheckExact(value))
        return NULL;
    PyObject *zone = PyDateTime_DATE_GET_TZINFO(value);
    if (zone != Py_None && !(type->has_zone && zone == PyDateTime_TimeZone_UTC))
        return NULL;
    int64_t days = days_since_1970(
        PyDateTime_GET_YEAR(value), PyDateTime_GET_MONTH(value), PyDateTime_GET_DAY(value));
    int64_t seconds = days * SECONDS_PER_DAY + PyDateTime_DATE_GET_HOUR(value) * 3600
        + PyDateTime_DATE_GET_MINUTE(value) * 60 + PyDateTime_DATE_GET_SECOND(value);
    return scaled(type, seconds * MICROSECONDS + PyDateTime_DATE_GET_MICROSECOND(value));
}

/* The only kind for which Python code runs. An Exception is forgotten: the pure function raises
 * it again, in its own terms. */
static PyObject *converted(const Type *type, PyObject *value, Py_ssize_t *size)
{
    PyObject *made = PyObject_CallOneArg(type->convert, value);
    if (made != NULL && type->measure != NULL) {
        PyObject *measured = PyObject_CallOneArg(type->measure, made);
        Py_ssize_t found = measured == NULL ? -1 : PyLong_AsSsize_t(measured);
        Py_XDECREF(measured);
        if (PyErr_Occurred())
            Py_CLEAR(made);
        else
            *size += found;
    }
    if (made == NULL && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return made;
}

PyObject *plain_value(const Type *type, PyObject *value, Py_ssize_t *size)
{
    if (value == Py_None)
        return type->is_nullable ? same(value) : NULL;
    switch (type->kind) {
    case KIND_BOOLEAN:
        return PyBool_Check(value) ? same(value) : NULL;
    case KIND_INTEGER:
        return integer(type, value);
    case KIND_DOUBLE:
        return floating(value, 0);
    case KIND_FLOAT:
        return floating(value, 1);
    case KIND_TEXT:
        return text(type, value, size);
    case KIND_BYTES:
        return bytes(type, value, size);
    case KIND_DATE:
        return date(value);
    case KIND_TIME:
        return time_of_day(type, value);
    case KIND_TIMESTAMP:
        return timestamp(type, value);
    case KIND_CONVERTED:
        return converted(type, value, size);
    case KIND_LIST:
    case KIND_MAP:
    case KIND_ROW:
        break; /* have cells and runs of their own */
    }
    return NULL;
}
