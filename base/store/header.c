/* header.c - parses and validates the JSON header of a safetensors file.
 *
 * Files are not trusted. Names, sizes and offsets are checked here once, with every product checked
 * for overflow, so that code that reads tensors may rely on them. */
#include "base/store/header.h"

#include "base/store/scan.h"

#include <stdlib.h>
#include <string.h>

/* A growing array in an arena. Doubling leaves the old copies behind, which together take at most
 * as much memory again. */
struct list {
    void *items;
    size_t n, capacity;
};

static void *append(struct list *list, size_t size, struct tec_arena *arena)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        void *items = tec_arena_push(arena, capacity, size, 16);
        if (!items)
            return NULL;
        if (list->n)
            memcpy(items, list->items, list->n * size);
        list->items = items;
        list->capacity = capacity;
    }
    return (char *)list->items + list->n++ * size;
}

static enum tec_status no_memory(struct tec_scan *s)
{
    return tec_fail(s->err, TEC_NO_MEMORY, "no memory for a header of %zu bytes", s->n);
}

static enum tec_status parse_dtype(struct tec_scan *s, struct tec_stored *t)
{
    const char *name;
    size_t n, at = s->at;
    TEC_TRY(tec_scan_string(s, &name, &n));
    if (strlen(name) != n || !tec_dtype_find(name, &t->dtype))
        return tec_scan_fail(s, at, "dtype is '%.40s', not one of the format", name);
    return TEC_OK;
}

static enum tec_status parse_shape(struct tec_scan *s, struct tec_stored *t)
{
    TEC_TRY(tec_scan_expect(s, '[', "shape"));
    for (bool more = !tec_scan_accept(s, ']'); more;) {
        uint64_t dim;
        size_t at = s->at;
        TEC_TRY(tec_scan_integer(s, &dim));
        if (t->rank == TEC_HEADER_MAX_RANK)
            return tec_fail(s->err, TEC_UNSUPPORTED,
                            "header byte %zu: tensor '%.80s': more than %d dimensions", at,
                            s->subject, TEC_HEADER_MAX_RANK);
        if (dim > INT64_MAX)
            return tec_scan_fail(s, at, "dimension %llu is beyond 63 bits",
                                 (unsigned long long)dim);
        t->shape[t->rank++] = (int64_t)dim;
        TEC_TRY(tec_scan_next(s, ']', &more));
    }
    return TEC_OK;
}

/* Offsets stay relative to the first data byte here; tec_header_parse makes them relative to the
 * file. */
static enum tec_status parse_offsets(struct tec_scan *s, struct tec_stored *t)
{
    uint64_t end;
    size_t at = s->at;
    TEC_TRY(tec_scan_expect(s, '[', "data_offsets"));
    TEC_TRY(tec_scan_integer(s, &t->begin));
    TEC_TRY(tec_scan_expect(s, ',', "data_offsets: two offsets"));
    TEC_TRY(tec_scan_integer(s, &end));
    TEC_TRY(tec_scan_expect(s, ']', "data_offsets: two offsets"));
    if (end < t->begin)
        return tec_scan_fail(s, at, "data_offsets end at %llu, before their begin %llu",
                             (unsigned long long)end, (unsigned long long)t->begin);
    t->bytes = end - t->begin;
    return TEC_OK;
}

static const struct {
    const char *name;
    enum tec_status (*parse)(struct tec_scan *s, struct tec_stored *t);
} fields[] = {{"dtype", parse_dtype}, {"shape", parse_shape}, {"data_offsets", parse_offsets}};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* Parse one field whose name was just read. Unknown fields are skipped, as the reference reader
 * does. */
static enum tec_status parse_field(struct tec_scan *s, struct tec_stored *t, const char *name,
                                   unsigned *seen, size_t at)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (strcmp(name, fields[i].name) != 0)
            continue;
        if (*seen & 1U << i)
            return tec_scan_fail(s, at, "%s is given twice", name);
        *seen |= 1U << i;
        return fields[i].parse(s, t);
    }
    return tec_scan_skip(s);
}

/* Check that shape and dtype need as many bytes as data_offsets give; products are checked for
 * overflow from left to right. */
static enum tec_status check_size(struct tec_scan *s, const struct tec_stored *t, size_t at)
{
    uint64_t count = 1, bits;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(count, (uint64_t)t->shape[i], &count) || count > INT64_MAX)
            return tec_scan_fail(s, at, "the product of the shape is beyond 63 bits");
    if (__builtin_mul_overflow(count, (uint64_t)tec_dtype_bits(t->dtype), &bits))
        return tec_scan_fail(s, at, "the shape times %d bits is beyond 64 bits",
                             tec_dtype_bits(t->dtype));
    if (bits % 8)
        return tec_scan_fail(s, at, "%llu elements of %d bits are not whole bytes",
                             (unsigned long long)count, tec_dtype_bits(t->dtype));
    if (bits / 8 != t->bytes)
        return tec_scan_fail(s, at, "shape and dtype need %llu bytes, data_offsets give %llu",
                             (unsigned long long)(bits / 8), (unsigned long long)t->bytes);
    return TEC_OK;
}

static enum tec_status parse_tensor(struct tec_scan *s, struct tec_stored *t, const char *name)
{
    unsigned seen = 0;
    size_t start = s->at;
    t->name = s->subject = name;
    TEC_TRY(tec_scan_expect(s, '{', "an object with dtype, shape and data_offsets"));
    for (bool more = !tec_scan_accept(s, '}'); more;) {
        const char *field;
        size_t n, at = s->at;
        /* A field's name is needed only until the next one. */
        struct tec_arena_mark mark = tec_arena_mark(s->arena);
        TEC_TRY(tec_scan_key(s, &field, &n));
        TEC_TRY(parse_field(s, t, field, &seen, at));
        tec_arena_rewind(s->arena, mark);
        TEC_TRY(tec_scan_next(s, '}', &more));
    }
    for (size_t i = 0; i < N_FIELDS; i++)
        if (!(seen & 1U << i))
            return tec_scan_fail(s, start, "%s is missing", fields[i].name);
    TEC_TRY(check_size(s, t, start));
    s->subject = NULL;
    return TEC_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct tec_metadata *)a)->key, ((const struct tec_metadata *)b)->key);
}

static enum tec_status parse_metadata(struct tec_scan *s, struct tec_header *header)
{
    struct list list = {0};
    s->subject = "__metadata__";
    if (!tec_scan_accept(s, '{')) {
        if (s->n - s->at < 4 || memcmp(s->s + s->at, "null", 4) != 0)
            return tec_scan_expect(s, '{', "an object of strings");
        s->subject = NULL;
        return tec_scan_skip(s); /* the reference takes null as no metadata */
    }
    for (bool more = !tec_scan_accept(s, '}'); more;) {
        struct tec_metadata *m = append(&list, sizeof *m, s->arena);
        size_t n;
        if (!m)
            return no_memory(s);
        TEC_TRY(tec_scan_key(s, &m->key, &n));
        TEC_TRY(tec_scan_string(s, &m->value, &m->value_bytes));
        TEC_TRY(tec_scan_next(s, '}', &more));
    }
    header->metadata = list.items;
    header->n_metadata = list.n;
    if (list.n)
        qsort(list.items, list.n, sizeof *header->metadata, by_key);
    for (size_t i = 1; i < list.n; i++)
        if (by_key(&header->metadata[i - 1], &header->metadata[i]) == 0)
            return tec_scan_fail(s, s->at, "the key '%.80s' is given twice",
                                 header->metadata[i].key);
    s->subject = NULL;
    return TEC_OK;
}

static enum tec_status parse_entries(struct tec_scan *s, struct tec_header *header)
{
    struct list list = {0};
    bool metadata = false;
    TEC_TRY(tec_scan_expect(s, '{', "a JSON object"));
    for (bool more = !tec_scan_accept(s, '}'); more;) {
        const char *name;
        size_t n, at = s->at;
        TEC_TRY(tec_scan_key(s, &name, &n));
        if (strcmp(name, "__metadata__") == 0) {
            if (metadata)
                return tec_scan_fail(s, at, "__metadata__ is given twice");
            metadata = true;
            TEC_TRY(parse_metadata(s, header));
        } else {
            struct tec_stored *t = append(&list, sizeof *t, s->arena);
            if (list.n > TEC_HEADER_MAX_TENSORS)
                return tec_fail(s->err, TEC_UNSUPPORTED, "header byte %zu: more than %d tensors",
                                at, TEC_HEADER_MAX_TENSORS);
            if (!t)
                return no_memory(s);
            TEC_TRY(parse_tensor(s, t, name));
        }
        TEC_TRY(tec_scan_next(s, '}', &more));
    }
    header->tensors = list.items;
    header->n_tensors = list.n;
    return tec_scan_end(s);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct tec_stored *const *)a)->name, (*(struct tec_stored *const *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const struct tec_stored *x = *(struct tec_stored *const *)a;
    const struct tec_stored *y = *(struct tec_stored *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The tensors must tile the `room` data bytes: no hole, no overlap, nothing after the last. */
static enum tec_status check_tiling(struct tec_stored **t, size_t n, uint64_t room,
                                    struct tec_error *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (t[i]->begin != end)
            return tec_fail(err, TEC_MALFORMED,
                            "tensor '%.80s' begins at data byte %llu, but the one before it ends "
                            "at %llu: %s",
                            t[i]->name, (unsigned long long)t[i]->begin, (unsigned long long)end,
                            t[i]->begin > end ? "a hole" : "they overlap");
        end += t[i]->bytes; /* cannot wrap: begin + bytes was read as one 64-bit number */
    }
    if (end == room)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED,
                    "the tensors end at data byte %llu, but the file has %llu: it is %s",
                    (unsigned long long)end, (unsigned long long)room,
                    end > room ? "cut short" : "longer than its header says");
}

static enum tec_status check_all(struct tec_header *header, uint64_t room, struct tec_scan *s)
{
    size_t n = header->n_tensors;
    struct tec_arena_mark mark = tec_arena_mark(s->arena);
    struct tec_stored **order = TEC_NEW(s->arena, n, struct tec_stored *);
    if (!order)
        return no_memory(s);
    for (size_t i = 0; i < n; i++)
        order[i] = &header->tensors[i];
    qsort(order, n, sizeof(void *), by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&order[i - 1], &order[i]) == 0)
            return tec_fail(s->err, TEC_MALFORMED, "tensor '%.80s' is listed twice",
                            order[i]->name);
    qsort(order, n, sizeof(void *), by_place);
    enum tec_status status = check_tiling(order, n, room, s->err);
    tec_arena_rewind(s->arena, mark);
    return status;
}

enum tec_status tec_header_parse(struct tec_header *header, const void *json, size_t n,
                                 uint64_t file_bytes, struct tec_arena *arena,
                                 struct tec_error *err)
{
    struct tec_scan s = {.s = json, .n = n, .arena = arena, .err = err};
    memset(header, 0, sizeof *header);
    if (n > TEC_HEADER_MAX_BYTES)
        return tec_fail(err, TEC_UNSUPPORTED, "a header of %zu bytes; the limit is %d", n,
                        TEC_HEADER_MAX_BYTES);
    if (file_bytes < 8 || file_bytes - 8 < n)
        return tec_fail(err, TEC_MALFORMED,
                        "the header needs %zu bytes, but the file has %llu in all", n,
                        (unsigned long long)file_bytes);
    TEC_TRY(tec_scan_utf8(&s));
    TEC_TRY(parse_entries(&s, header));
    TEC_TRY(check_all(header, file_bytes - 8 - n, &s));
    for (size_t i = 0; i < header->n_tensors; i++)
        header->tensors[i].begin += 8 + n;
    return TEC_OK;
}

int64_t tec_stored_count(const struct tec_stored *stored)
{
    int64_t count = 1;
    for (int i = 0; i < stored->rank; i++)
        count *= stored->shape[i];
    return count;
}
