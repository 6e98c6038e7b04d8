/* The module fluss_native._rows, and RowTaker, the function behind `append` and `upsert` of a writer.
 *
 * It does what the function of fluss.write.row_taker does, for rows whose values are of the plain
 * classes of their columns: it flattens the row, and adds its cells and runs to the lists of the
 * open chunk under the lock of the buffer. Every other call goes to that function unchanged: other
 * rows, a chunk that is to be begun, a large row, a closed writer. So all errors are its errors.
 *
 * Python code runs in three places only: before anything is added (functions of values, the lock,
 * a garbage collection for the handle), and after the lock is free again (a full chunk is sealed).
 * What is in between is one step for other threads and for signal handlers.
 */
#include "column_types.h"
#include "columns.h"

#include <structmember.h>

/* fluss-core uses this module only if it knows the number. It changes with what they exchange. */
#define INTERFACE 2

/* The attributes of fluss.write.open_rows.OpenRows that are read and written here. */
enum { CHUNK, COUNT, BYTES, TARGET_BYTES, TAKES_VALUES, ATTRIBUTE_COUNT };
static const char *const ATTRIBUTES[ATTRIBUTE_COUNT]
    = { "chunk", "count", "bytes", "target_bytes", "takes_values" };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *rows;      /* OpenRows */
    PyObject *streams;   /* a tuple of its lists: the cells, and each run */
    PyObject *acquire;   /* of its lock */
    PyObject *release;
    PyObject *writer;    /* has seal_full() */
    PyObject *otherwise; /* the pure function */
    PyTypeObject *handle;
    Py_ssize_t offsets[ATTRIBUTE_COUNT];
    Py_ssize_t handle_chunk, handle_first; /* offsets of its attributes */
    Py_ssize_t row_bytes, large_row_bytes;
    Py_ssize_t column_count;
    Type *columns;
    Py_ssize_t *sources; /* the place of each column in a row; -1: NULL */
    Names *names;
    Py_ssize_t run_count;
    FlatRow *spare; /* is used by one call at a time */
} RowTaker;

static inline PyObject **slot(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

static inline PyObject **attribute(RowTaker *self, int which)
{
    return slot(self->rows, self->offsets[which]);
}

/* --- adding a row to the open chunk ------------------------------------------------------------ */

/* Make room in a list, so that adding cannot fail. */
static int reserve(PyObject *stream, Py_ssize_t count)
{
    PyListObject *list = (PyListObject *)stream;
    Py_ssize_t before = Py_SIZE(list);
    if (list->allocated - before >= count)
        return 0;
    int result = 0;
    while (result == 0 && Py_SIZE(list) < before + count)
        result = PyList_Append(stream, Py_None);
    for (Py_ssize_t added = Py_SIZE(list) - before; added > 0; added--)
        Py_DECREF(Py_None);
    Py_SET_SIZE(list, before); /* the room stays */
    return result;
}

/* Move references to the end of a list that has room for them. */
static void move(Objects *objects, PyObject *stream)
{
    PyListObject *list = (PyListObject *)stream;
    Py_ssize_t before = Py_SIZE(list);
    for (Py_ssize_t index = 0; index < objects->count; index++)
        list->ob_item[before + index] = objects->items[index];
    Py_SET_SIZE(list, before + objects->count);
    objects->count = 0;
}

static int reserve_all(RowTaker *self, const FlatRow *row)
{
    if (reserve(PyTuple_GET_ITEM(self->streams, 0), row->cells.count) < 0)
        return -1;
    for (Py_ssize_t run = 0; run < self->run_count; run++)
        if (reserve(PyTuple_GET_ITEM(self->streams, run + 1), row->runs[run].count) < 0)
            return -1;
    return 0;
}

static int read_number(RowTaker *self, int which, Py_ssize_t *number)
{
    PyObject *found = *attribute(self, which);
    *number = found == NULL ? -1 : PyLong_AsSsize_t(found);
    return *number < 0 ? -1 : 0;
}

/* Add a row and fill its handle, under the lock. `is_full`: the chunk is to be sealed. */
static Outcome add_row(RowTaker *self, FlatRow *row, PyObject *handle, int *is_full)
{
    PyObject *chunk = *attribute(self, CHUNK), *place = *attribute(self, COUNT);
    Py_ssize_t count, size, target;
    if (*attribute(self, TAKES_VALUES) != Py_True || chunk == NULL)
        return LEFT;
    if (read_number(self, COUNT, &count) < 0 || read_number(self, BYTES, &size) < 0
        || read_number(self, TARGET_BYTES, &target) < 0)
        return PyErr_Occurred() ? FAILED : LEFT;
    PyObject *next = PyLong_FromSsize_t(count + 1);
    PyObject *filled = PyLong_FromSsize_t(size + row->size);
    if (next == NULL || filled == NULL || reserve_all(self, row) < 0) {
        Py_XDECREF(next);
        Py_XDECREF(filled);
        return FAILED;
    }
    *slot(handle, self->handle_chunk) = Py_NewRef(chunk);
    *slot(handle, self->handle_first) = place; /* moves; the chunk gets the next */
    *attribute(self, COUNT) = next;
    Py_SETREF(*attribute(self, BYTES), filled);
    *is_full = size + row->size >= target;
    if (*is_full)
        Py_SETREF(*attribute(self, TAKES_VALUES), Py_NewRef(Py_False));
    move(&row->cells, PyTuple_GET_ITEM(self->streams, 0));
    for (Py_ssize_t run = 0; run < self->run_count; run++)
        move(&row->runs[run], PyTuple_GET_ITEM(self->streams, run + 1));
    return TAKEN;
}

static int call(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* An interrupt may end the wait for the lock; then it is not held. */
static Outcome add_locked(RowTaker *self, FlatRow *row, PyObject *handle, int *is_full)
{
    if (call(self->acquire) < 0)
        return FAILED;
    Outcome outcome = add_row(self, row, handle, is_full);
    PyObject *type, *error, *traceback;
    if (outcome != FAILED)
        return call(self->release) < 0 ? FAILED : outcome;
    PyErr_Fetch(&type, &error, &traceback); /* no memory */
    if (call(self->release) < 0)
        PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    return FAILED;
}

/* --- one call ---------------------------------------------------------------------------------- */

static Outcome flatten_values(RowTaker *self, PyObject **values, FlatRow *row)
{
    row->size = self->row_bytes;
    Outcome outcome = TAKEN;
    for (Py_ssize_t column = 0; outcome == TAKEN && column < self->column_count; column++) {
        Py_ssize_t source = self->sources[column];
        PyObject *value = source < 0 ? NULL : values[source];
        outcome = flatten(&self->columns[column], value == NULL ? Py_None : value, row);
    }
    if (outcome == TAKEN && row->size > self->large_row_bytes)
        return LEFT;
    return outcome;
}

/* Columns of a row that need no memory from the heap. */
#define COLUMNS_ON_STACK 64

static Outcome flatten_given(RowTaker *self, PyObject *given, FlatRow *row)
{
    PyObject *few[COLUMNS_ON_STACK], **values = few;
    Py_ssize_t count = self->names->count;
    if (count > COLUMNS_ON_STACK) {
        values = PyMem_New(PyObject *, (size_t)count);
        if (values == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
    }
    for (Py_ssize_t index = 0; index < count; index++)
        values[index] = NULL;
    Outcome outcome = row_values(self->names, given, values);
    if (outcome == TAKEN)
        outcome = flatten_values(self, values, row);
    for (Py_ssize_t index = 0; index < count; index++)
        Py_XDECREF(values[index]);
    if (values != few)
        PyMem_Free(values);
    return outcome;
}

/* Take a row; `made` is its handle. */
static Outcome take(RowTaker *self, PyObject *given, PyObject **made)
{
    if (*attribute(self, TAKES_VALUES) != Py_True)
        return LEFT;
    FlatRow *row = self->spare;
    self->spare = NULL;
    if (row == NULL && (row = flat_row_new(self->run_count)) == NULL)
        return FAILED;
    int is_full = 0;
    PyObject *handle = NULL;
    Outcome outcome = flatten_given(self, given, row);
    if (outcome == TAKEN) {
        handle = self->handle->tp_alloc(self->handle, 0);
        outcome = handle == NULL ? FAILED : add_locked(self, row, handle, &is_full);
    }
    flat_row_clear(row);
    if (self->spare == NULL)
        self->spare = row;
    else
        flat_row_free(row);
    if (outcome == TAKEN && is_full) {
        PyObject *sealed = PyObject_CallMethod(self->writer, "seal_full", NULL);
        outcome = sealed == NULL ? FAILED : TAKEN;
        Py_XDECREF(sealed);
    }
    if (outcome != TAKEN)
        Py_CLEAR(handle);
    *made = handle;
    return outcome;
}

static PyObject *row_taker_call(
    PyObject *callable, PyObject *const *arguments, size_t flags, PyObject *keywords)
{
    RowTaker *self = (RowTaker *)callable;
    if (self->rows == NULL) {
        PyErr_SetString(PyExc_ReferenceError, "the writer is gone");
        return NULL;
    }
    if (PyVectorcall_NARGS(flags) == 1 && keywords == NULL) {
        PyObject *handle;
        Outcome outcome = take(self, arguments[0], &handle);
        if (outcome != LEFT)
            return outcome == TAKEN ? handle : NULL;
    }
    return PyObject_Vectorcall(self->otherwise, arguments, flags, keywords);
}

/* --- the type ---------------------------------------------------------------------------------- */

/* Where an attribute of `__slots__` is in the objects of a class; -1 with an error set. */
static Py_ssize_t offset_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = -1;
    if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDescrObject *member = (PyMemberDescrObject *)found;
        if (member->d_member->type == T_OBJECT_EX && PyType_IsSubtype(type, PyDescr_TYPE(found)))
            offset = member->d_member->offset;
    }
    if (offset < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s.%s is not in __slots__", type->tp_name, name);
    Py_XDECREF(found);
    return offset;
}

static int find_offsets(RowTaker *self)
{
    for (int which = 0; which < ATTRIBUTE_COUNT; which++)
        if ((self->offsets[which] = offset_of(Py_TYPE(self->rows), ATTRIBUTES[which])) < 0)
            return -1;
    if ((self->handle_chunk = offset_of(self->handle, "_chunk")) < 0)
        return -1;
    return (self->handle_first = offset_of(self->handle, "_first")) < 0 ? -1 : 0;
}

static int check_streams(RowTaker *self)
{
    int are_lists = PyTuple_GET_SIZE(self->streams) == self->run_count + 1;
    for (Py_ssize_t index = 0; are_lists && index < PyTuple_GET_SIZE(self->streams); index++)
        are_lists = PyList_CheckExact(PyTuple_GET_ITEM(self->streams, index));
    if (!are_lists)
        PyErr_SetString(PyExc_TypeError, "the streams are lists, of the cells and of each run");
    return are_lists ? 0 : -1;
}

static int read_columns(RowTaker *self, PyObject *columns, PyObject *sources)
{
    Py_ssize_t count = PyTuple_GET_SIZE(columns);
    if (PyTuple_GET_SIZE(sources) != count) {
        PyErr_SetString(PyExc_ValueError, "each column has a source");
        return -1;
    }
    self->columns = PyMem_Calloc((size_t)count + 1, sizeof(Type));
    self->sources = PyMem_Calloc((size_t)count + 1, sizeof(Py_ssize_t));
    if (self->columns == NULL || self->sources == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        Py_ssize_t source = PyLong_AsSsize_t(PyTuple_GET_ITEM(sources, index));
        if (source >= self->names->count || source < -1)
            PyErr_SetString(PyExc_ValueError, "a source is the place of a name, or -1");
        self->sources[index] = source;
        self->column_count = index + 1;
        if (PyErr_Occurred()
            || type_read(&self->columns[index], PyTuple_GET_ITEM(columns, index), &self->run_count)
                < 0)
            return -1;
    }
    return 0;
}

static PyObject *row_taker_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names_of[] = { "names", "columns", "sources", "rows", "streams", "writer",
        "handle", "otherwise", "row_bytes", "large_row_bytes", NULL };
    PyObject *names, *columns, *sources, *rows, *streams, *writer, *handle, *otherwise;
    Py_ssize_t row_bytes, large_row_bytes;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "$O!O!O!OO!OO!Onn", names_of,
            &PyTuple_Type, &names, &PyTuple_Type, &columns, &PyTuple_Type, &sources, &rows,
            &PyTuple_Type, &streams, &writer, &PyType_Type, &handle, &otherwise, &row_bytes,
            &large_row_bytes))
        return NULL;
    RowTaker *self = (RowTaker *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = row_taker_call;
    self->rows = Py_NewRef(rows);
    self->streams = Py_NewRef(streams);
    self->writer = Py_NewRef(writer);
    self->handle = (PyTypeObject *)Py_NewRef(handle);
    self->otherwise = Py_NewRef(otherwise);
    self->row_bytes = row_bytes;
    self->large_row_bytes = large_row_bytes;
    PyObject *lock = PyObject_GetAttrString(rows, "lock");
    if (lock != NULL && (self->acquire = PyObject_GetAttrString(lock, "acquire")) != NULL)
        self->release = PyObject_GetAttrString(lock, "release");
    Py_XDECREF(lock);
    if (self->release == NULL || find_offsets(self) < 0 || (self->names = names_new(names)) == NULL
        || read_columns(self, columns, sources) < 0 || check_streams(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int row_taker_traverse(PyObject *object, visitproc visit, void *arg)
{
    RowTaker *self = (RowTaker *)object;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->rows);
    Py_VISIT(self->streams);
    Py_VISIT(self->acquire);
    Py_VISIT(self->release);
    Py_VISIT(self->writer);
    Py_VISIT(self->otherwise);
    Py_VISIT(self->handle);
    int result = names_traverse(self->names, visit, arg);
    for (Py_ssize_t column = 0; result == 0 && column < self->column_count; column++)
        result = type_traverse(&self->columns[column], visit, arg);
    return result;
}

static int row_taker_clear(PyObject *object)
{
    RowTaker *self = (RowTaker *)object;
    Py_CLEAR(self->rows);
    Py_CLEAR(self->streams);
    Py_CLEAR(self->acquire);
    Py_CLEAR(self->release);
    Py_CLEAR(self->writer);
    Py_CLEAR(self->otherwise);
    Py_CLEAR(self->handle);
    return 0;
}

static void row_taker_free(PyObject *object)
{
    RowTaker *self = (RowTaker *)object;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    row_taker_clear(object);
    for (Py_ssize_t column = 0; column < self->column_count; column++)
        type_clear(&self->columns[column]);
    PyMem_Free(self->columns);
    PyMem_Free(self->sources);
    names_free(self->names);
    flat_row_free(self->spare);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMemberDef row_taker_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(RowTaker, vectorcall), READONLY, NULL },
    { "otherwise", T_OBJECT_EX, offsetof(RowTaker, otherwise), READONLY, "The pure function." },
    { NULL },
};

PyDoc_STRVAR(row_taker_doc, "The function behind `append` and `upsert`; see fluss.write.row_taker.");

static PyType_Slot row_taker_slots[] = {
    { Py_tp_doc, (void *)row_taker_doc },
    { Py_tp_new, row_taker_new },
    { Py_tp_call, PyVectorcall_Call },
    { Py_tp_traverse, row_taker_traverse },
    { Py_tp_clear, row_taker_clear },
    { Py_tp_dealloc, row_taker_free },
    { Py_tp_members, row_taker_members },
    { 0, NULL },
};

static PyType_Spec row_taker_spec = {
    .name = "fluss_native.RowTaker",
    .basicsize = sizeof(RowTaker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
        | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = row_taker_slots,
};

/* --- the module -------------------------------------------------------------------------------- */

static int execute(PyObject *module)
{
    if (plain_values_load() < 0 || columns_load() < 0)
        return -1;
    PyObject *type = PyType_FromModuleAndSpec(module, &row_taker_spec, NULL);
    if (type == NULL)
        return -1;
    int result = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return result < 0 ? -1 : PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

/* What is here relies on the GIL, so the module does not say that it can do without. */
static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, execute },
#if PY_VERSION_HEX >= 0x030C0000
    { Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "fluss_native._rows",
    .m_methods = columns_functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
