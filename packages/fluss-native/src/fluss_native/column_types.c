/* Descriptions of columns: (kind, is_nullable, what the kind needs to know ...).
 *
 * | kind                    | further                                  |
 * |-------------------------|------------------------------------------|
 * | boolean, double, float, |                                          |
 * | date                    |                                          |
 * | integer                 | bits                                     |
 * | text                    | length or -1, whether only ASCII is taken |
 * | bytes                   | length or -1, whether it counts          |
 * | time                    | units per second                         |
 * | timestamp               | units per second, whether it has a zone  |
 * | converted               | its function, that of its size or None   |
 * | list                    | the description of the element           |
 * | map                     | those of the key and the value           |
 * | row                     | the names, and the descriptions          |
 */
#include "column_types.h"

static int read_children(Type *type, PyObject *descriptions, Py_ssize_t *runs)
{
    Py_ssize_t count = PyTuple_GET_SIZE(descriptions);
    type->children = PyMem_Calloc((size_t)count + 1, sizeof(Type));
    if (type->children == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; type->child_count < count; type->child_count++)
        if (type_read(&type->children[type->child_count],
                PyTuple_GET_ITEM(descriptions, type->child_count), runs) < 0) {
            type->child_count++; /* is cleared, too */
            return -1;
        }
    return 0;
}

/* The elements of lists and maps have no cells. */
static int check_elements(const Type *type)
{
    for (Py_ssize_t child = 0; child < type->child_count; child++)
        if (type->children[child].kind >= KIND_LIST) {
            PyErr_SetString(PyExc_ValueError, "an element that holds values is converted");
            return -1;
        }
    return 0;
}

static int read_integer(Type *type, PyObject *description)
{
    int bits;
    const char *kind;
    if (!PyArg_ParseTuple(description, "spi", &kind, &type->is_nullable, &bits))
        return -1;
    if (bits < 1 || bits > 64) {
        PyErr_SetString(PyExc_ValueError, "an integer has 1 to 64 bits");
        return -1;
    }
    type->high = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    type->low = -type->high - 1;
    return 0;
}

static int read_time(Type *type, PyObject *description, const char *format)
{
    const char *kind;
    long long per_second;
    if (!PyArg_ParseTuple(
            description, format, &kind, &type->is_nullable, &per_second, &type->has_zone))
        return -1;
    if (per_second < 1 || (per_second < 1000000 ? 1000000 % per_second : per_second % 1000000)) {
        PyErr_SetString(PyExc_ValueError, "a unit is a multiple or a part of microseconds");
        return -1;
    }
    type->per_second = per_second;
    type->is_whole = type->kind == KIND_TIME;
    return 0;
}

static int read_converted(Type *type, PyObject *description)
{
    const char *kind;
    PyObject *convert, *measure;
    if (!PyArg_ParseTuple(description, "spOO", &kind, &type->is_nullable, &convert, &measure))
        return -1;
    type->convert = Py_NewRef(convert);
    type->measure = measure == Py_None ? NULL : Py_NewRef(measure);
    return 0;
}

static int read_list(Type *type, PyObject *description, Py_ssize_t *runs)
{
    PyObject *children = PyTuple_GetSlice(description, 2, PyTuple_GET_SIZE(description));
    if (children == NULL)
        return -1;
    type->run = *runs;
    *runs += type->kind == KIND_MAP ? 2 : 1;
    int result = -1;
    if (PyTuple_GET_SIZE(children) != (type->kind == KIND_MAP ? 2 : 1))
        PyErr_SetString(PyExc_ValueError, "a list has an element, a map a key and a value");
    else if (read_children(type, children, runs) == 0)
        result = check_elements(type);
    Py_DECREF(children);
    return result;
}

static int read_row(Type *type, PyObject *description, Py_ssize_t *runs)
{
    const char *kind;
    PyObject *names, *fields;
    if (!PyArg_ParseTuple(description, "spO!O!", &kind, &type->is_nullable, &PyTuple_Type, &names,
            &PyTuple_Type, &fields))
        return -1;
    if (PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(fields)) {
        PyErr_SetString(PyExc_ValueError, "each field has a name");
        return -1;
    }
    type->names = names_new(names);
    return type->names == NULL ? -1 : read_children(type, fields, runs);
}

static const struct {
    const char *name;
    Kind kind;
} KINDS[] = {
    { "boolean", KIND_BOOLEAN },
    { "integer", KIND_INTEGER },
    { "double", KIND_DOUBLE },
    { "float", KIND_FLOAT },
    { "text", KIND_TEXT },
    { "bytes", KIND_BYTES },
    { "date", KIND_DATE },
    { "time", KIND_TIME },
    { "timestamp", KIND_TIMESTAMP },
    { "converted", KIND_CONVERTED },
    { "list", KIND_LIST },
    { "map", KIND_MAP },
    { "row", KIND_ROW },
};

static int read_kind(Type *type, PyObject *description)
{
    if (!PyTuple_CheckExact(description) || PyTuple_GET_SIZE(description) < 2
        || !PyUnicode_CheckExact(PyTuple_GET_ITEM(description, 0))) {
        PyErr_SetString(PyExc_TypeError, "a description is a tuple: (kind, is_nullable, ...)");
        return -1;
    }
    PyObject *name = PyTuple_GET_ITEM(description, 0);
    for (size_t index = 0; index < Py_ARRAY_LENGTH(KINDS); index++)
        if (PyUnicode_CompareWithASCIIString(name, KINDS[index].name) == 0) {
            type->kind = KINDS[index].kind;
            type->is_nullable = PyObject_IsTrue(PyTuple_GET_ITEM(description, 1));
            return type->is_nullable < 0 ? -1 : 0;
        }
    PyErr_Format(PyExc_ValueError, "there is no kind %R", name);
    return -1;
}

int type_read(Type *type, PyObject *description, Py_ssize_t *runs)
{
    const char *kind;
    if (read_kind(type, description) < 0)
        return -1;
    switch (type->kind) {
    case KIND_INTEGER:
        return read_integer(type, description);
    case KIND_TEXT:
        return PyArg_ParseTuple(description, "spnp", &kind, &type->is_nullable, &type->length,
                   &type->is_ascii) ? 0 : -1;
    case KIND_BYTES:
        return PyArg_ParseTuple(description, "spnp", &kind, &type->is_nullable, &type->length,
                   &type->is_counted) ? 0 : -1;
    case KIND_TIME:
        return read_time(type, description, "spL");
    case KIND_TIMESTAMP:
        return read_time(type, description, "spLp");
    case KIND_CONVERTED:
        return read_converted(type, description);
    case KIND_LIST:
    case KIND_MAP:
        return read_list(type, description, runs);
    case KIND_ROW:
        return read_row(type, description, runs);
    case KIND_BOOLEAN:
    case KIND_DOUBLE:
    case KIND_FLOAT:
    case KIND_DATE:
        break;
    }
    return 0;
}

int type_traverse(const Type *type, visitproc visit, void *arg)
{
    Py_VISIT(type->convert);
    Py_VISIT(type->measure);
    int result = names_traverse(type->names, visit, arg);
    for (Py_ssize_t child = 0; result == 0 && child < type->child_count; child++)
        result = type_traverse(&type->children[child], visit, arg);
    return result;
}

void type_clear(Type *type)
{
    Py_CLEAR(type->convert);
    Py_CLEAR(type->measure);
    for (Py_ssize_t child = 0; child < type->child_count; child++)
        type_clear(&type->children[child]);
    type->child_count = 0;
    PyMem_Free(type->children);
    type->children = NULL;
    names_free(type->names);
    type->names = NULL;
}
