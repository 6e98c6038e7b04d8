/* Flattens lists, maps and rows, and finds the values of dicts.
 *
 * A dict is read without Python code: its keys are exact texts, or the row is left to the pure
 * function. Most programs make all their dicts in the same place, so the keys are the same objects
 * in the same order; then no name is looked up.
 */
#include "flat_rows.h"

#include <string.h>

/* What values take in the estimate of a row's size; the same as in fluss.write.value_source. */
#define OFFSET_WIDTH 4
#define NESTED_WIDTH 8
/* Of a larger row the memory is freed again. */
#define CAPACITY_KEPT 4096
/* So many fields of a row need no memory from the heap. */
#define FIELDS_ON_STACK 32

/* --- growing arrays of references -------------------------------------------------------------- */

/* Add a reference, which is stolen, also if there is no memory for it. */
static Outcome add(Objects *objects, PyObject *item)
{
    if (objects->count == objects->capacity) {
        Py_ssize_t capacity = objects->capacity ? 2 * objects->capacity : 8;
        PyObject **items = objects->items;
        PyMem_Resize(items, PyObject *, (size_t)capacity);
        if (items == NULL) {
            Py_DECREF(item);
            PyErr_NoMemory();
            return FAILED;
        }
        objects->items = items;
        objects->capacity = capacity;
    }
    objects->items[objects->count++] = item;
    return TAKEN;
}

static void clear(Objects *objects)
{
    while (objects->count > 0)
        Py_DECREF(objects->items[--objects->count]);
    if (objects->capacity > CAPACITY_KEPT) {
        PyMem_Free(objects->items);
        objects->items = NULL;
        objects->capacity = 0;
    }
}

FlatRow *flat_row_new(Py_ssize_t run_count)
{
    FlatRow *row = PyMem_Calloc(1, sizeof(FlatRow));
    if (row != NULL)
        row->runs = PyMem_Calloc((size_t)run_count + 1, sizeof(Objects));
    if (row == NULL || row->runs == NULL) {
        PyMem_Free(row);
        PyErr_NoMemory();
        return NULL;
    }
    row->run_count = run_count;
    return row;
}

void flat_row_clear(FlatRow *row)
{
    clear(&row->cells);
    for (Py_ssize_t run = 0; run < row->run_count; run++)
        clear(&row->runs[run]);
    row->size = 0;
}

void flat_row_free(FlatRow *row)
{
    if (row == NULL)
        return;
    flat_row_clear(row);
    PyMem_Free(row->cells.items);
    for (Py_ssize_t run = 0; run < row->run_count; run++)
        PyMem_Free(row->runs[run].items);
    PyMem_Free(row->runs);
    PyMem_Free(row);
}

/* --- the values of a dict ---------------------------------------------------------------------- */

Names *names_new(PyObject *given)
{
    Py_ssize_t count = PyTuple_GET_SIZE(given);
    Names *names = PyMem_Calloc(1, sizeof(Names));
    if (names != NULL) {
        names->count = count;
        names->last_keys = PyMem_Calloc((size_t)count + 1, sizeof(PyObject *));
        names->last_places = PyMem_Calloc((size_t)count + 1, sizeof(Py_ssize_t));
    }
    if (names == NULL || names->last_keys == NULL || names->last_places == NULL) {
        names_free(names);
        PyErr_NoMemory();
        return NULL;
    }
    names->places = PyDict_New();
    for (Py_ssize_t place = 0; names->places != NULL && place < count; place++) {
        PyObject *name = PyTuple_GET_ITEM(given, place), *number = PyLong_FromSsize_t(place);
        if (!PyUnicode_CheckExact(name))
            PyErr_SetString(PyExc_TypeError, "a name is a str");
        else if (number != NULL)
            PyDict_SetItem(names->places, name, number);
        Py_XDECREF(number);
        if (PyErr_Occurred())
            Py_CLEAR(names->places);
    }
    if (names->places == NULL) {
        names_free(names);
        return NULL;
    }
    return names;
}

int names_traverse(const Names *names, visitproc visit, void *arg)
{
    if (names != NULL)
        Py_VISIT(names->places);
    return 0;
}

void names_free(Names *names)
{
    if (names == NULL)
        return;
    for (Py_ssize_t index = 0; names->last_keys != NULL && index < names->count; index++)
        Py_XDECREF(names->last_keys[index]);
    Py_XDECREF(names->places);
    PyMem_Free(names->last_keys);
    PyMem_Free(names->last_places);
    PyMem_Free(names);
}

/* The place of a key that was elsewhere, or another object, in the last dict; -1: no such name. */
static Py_ssize_t look_up(Names *names, Py_ssize_t index, PyObject *key)
{
    if (!PyUnicode_CheckExact(key))
        return -1; /* its __eq__ and __hash__ may be the user's */
    PyObject *found = PyDict_GetItemWithError(names->places, key);
    if (found == NULL)
        return -1;
    Py_ssize_t place = PyLong_AsSsize_t(found);
    Py_INCREF(key);
    Py_XSETREF(names->last_keys[index], key);
    names->last_places[index] = place;
    return place;
}

static Outcome dict_values(Names *names, PyObject *row, PyObject **values)
{
    if (PyDict_GET_SIZE(row) > names->count)
        return LEFT;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    /* Different texts have different places, so that no value is found twice. */
    for (Py_ssize_t index = 0; PyDict_Next(row, &position, &key, &value); index++) {
        Py_ssize_t place = names->last_places[index];
        if (key != names->last_keys[index])
            place = look_up(names, index, key);
        if (place < 0)
            return PyErr_Occurred() ? FAILED : LEFT;
        Py_INCREF(value);
        values[place] = value;
    }
    return TAKEN;
}

Outcome row_values(Names *names, PyObject *row, PyObject **values)
{
    if (PyDict_CheckExact(row))
        return dict_values(names, row, values);
    if (!PyTuple_CheckExact(row) && !PyList_CheckExact(row))
        return LEFT;
    if (PySequence_Fast_GET_SIZE(row) != names->count)
        return LEFT;
    PyObject **items = PySequence_Fast_ITEMS(row);
    for (Py_ssize_t place = 0; place < names->count; place++) {
        Py_INCREF(items[place]);
        values[place] = items[place];
    }
    return TAKEN;
}

/* --- lists, maps and rows ---------------------------------------------------------------------- */

static Outcome add_value(const Type *type, PyObject *value, Objects *target, FlatRow *row)
{
    PyObject *made = plain_value(type, value, &row->size);
    if (made == NULL)
        return PyErr_Occurred() ? FAILED : LEFT;
    return add(target, made);
}

static Outcome add_length(Py_ssize_t length, FlatRow *row)
{
    PyObject *made = PyLong_FromSsize_t(length);
    return made == NULL ? FAILED : add(&row->cells, made);
}

static Outcome add_null(const Type *type, FlatRow *row)
{
    Py_INCREF(Py_None);
    Outcome outcome = add(&row->cells, Py_None);
    if (type->kind == KIND_ROW)
        for (Py_ssize_t field = 0; outcome == TAKEN && field < type->child_count; field++)
            outcome = add_null(&type->children[field], row);
    return outcome;
}

/* The caller has made sure that the list does not change. */
static Outcome add_elements(const Type *type, PyObject *list, FlatRow *row)
{
    Py_ssize_t length = PySequence_Fast_GET_SIZE(list);
    PyObject **items = PySequence_Fast_ITEMS(list);
    Outcome outcome = add_length(length, row);
    row->size += OFFSET_WIDTH + NESTED_WIDTH * length;
    for (Py_ssize_t index = 0; outcome == TAKEN && index < length; index++)
        outcome = add_value(type->children, items[index], &row->runs[type->run], row);
    return outcome;
}

static Outcome add_list(const Type *type, PyObject *value, FlatRow *row)
{
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
        return LEFT;
    if (type->children->kind != KIND_CONVERTED)
        return add_elements(type, value, row);
    PyObject *copy = PySequence_Tuple(value); /* the function may change the list */
    if (copy == NULL)
        return FAILED;
    Outcome outcome = add_elements(type, copy, row);
    Py_DECREF(copy);
    return outcome;
}

static Outcome add_entries(const Type *type, PyObject *dict, FlatRow *row)
{
    const Type *key_type = &type->children[0], *value_type = &type->children[1];
    Py_ssize_t length = PyDict_GET_SIZE(dict), position = 0;
    PyObject *key, *value;
    Outcome outcome = add_length(length, row);
    row->size += OFFSET_WIDTH + (3 * NESTED_WIDTH + OFFSET_WIDTH) * length;
    while (outcome == TAKEN && PyDict_Next(dict, &position, &key, &value)) {
        outcome = add_value(key_type, key, &row->runs[type->run], row);
        if (outcome == TAKEN)
            outcome = add_value(value_type, value, &row->runs[type->run + 1], row);
    }
    return outcome;
}

static Outcome add_map(const Type *type, PyObject *value, FlatRow *row)
{
    if (!PyDict_CheckExact(value))
        return LEFT;
    if (type->children[0].kind != KIND_CONVERTED && type->children[1].kind != KIND_CONVERTED)
        return add_entries(type, value, row);
    PyObject *copy = PyDict_Copy(value);
    if (copy == NULL)
        return FAILED;
    Outcome outcome = add_entries(type, copy, row);
    Py_DECREF(copy);
    return outcome;
}

static Outcome add_fields(const Type *type, PyObject *value, PyObject **values, FlatRow *row)
{
    Outcome outcome = row_values(type->names, value, values);
    if (outcome == TAKEN) {
        Py_INCREF(Py_True);
        outcome = add(&row->cells, Py_True);
    }
    row->size += OFFSET_WIDTH + NESTED_WIDTH * type->child_count;
    for (Py_ssize_t field = 0; outcome == TAKEN && field < type->child_count; field++)
        outcome = flatten(&type->children[field], values[field] ? values[field] : Py_None, row);
    for (Py_ssize_t field = 0; field < type->child_count; field++)
        Py_XDECREF(values[field]);
    return outcome;
}

static Outcome add_row(const Type *type, PyObject *value, FlatRow *row)
{
    PyObject *few[FIELDS_ON_STACK];
    Py_ssize_t count = type->child_count;
    if (count <= FIELDS_ON_STACK) {
        memset(few, 0, (size_t)count * sizeof(PyObject *));
        return add_fields(type, value, few, row);
    }
    PyObject **many = PyMem_Calloc((size_t)count, sizeof(PyObject *));
    if (many == NULL) {
        PyErr_NoMemory();
        return FAILED;
    }
    Outcome outcome = add_fields(type, value, many, row);
    PyMem_Free(many);
    return outcome;
}

Outcome flatten(const Type *type, PyObject *value, FlatRow *row)
{
    if (type->kind < KIND_LIST)
        return add_value(type, value, &row->cells, row);
    if (value == Py_None)
        return type->is_nullable ? add_null(type, row) : LEFT;
    switch (type->kind) {
    case KIND_LIST:
        return add_list(type, value, row);
    case KIND_MAP:
        return add_map(type, value, row);
    default:
        return add_row(type, value, row);
    }
}
