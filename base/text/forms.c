/* forms.c - the normal forms of Unicode, and small letters, as the normalizers of tokenizer.json
 * have them.
 *
 * Combining marks are put in order here, not by utf8proc: long runs by a counting sort, so that
 * hostile text takes linear time. The reference's tables are of other ages than utf8proc's:
 * normal.inc says what it changes. */
#include "base/text/unicode.h"

#include "base/text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

struct range {
    uint32_t first, last;
};

/* Each `step`th code point of a range, and how far behind it its small letter is. */
struct capitals {
    struct range of;
    int32_t far;
    uint32_t step;
};

#include "base/text/tables/normal.inc"

static int compare(const void *code, const void *range)
{
    uint32_t c = *(const uint32_t *)code;
    const struct range *r = range;
    return c < r->first ? -1 : c > r->last;
}

/* The range of a list, or what begins with one, that a code point lies in; NULL: none. */
#define FIND(list, code)                                                                          \
    bsearch(&(uint32_t){(uint32_t)(code)}, list, sizeof(list) / sizeof(list)[0], sizeof(list)[0], \
            compare)
#define IS_IN(list, code) (FIND(list, code) != NULL)

/* Marks that came after the reference's tables: it leaves them where they are. */
static bool is_late_mark(int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return !IS_IN(marks, code);
    default:
        return false;
    }
}

static unsigned combining(int32_t code)
{
    if (code < 0x300)
        return 0;
    unsigned class = (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
    return class && is_late_mark(code) ? 0 : class;
}

enum { FEW = 64 /* bytes of a run that is put in order without memory of its own */ };

static void insert_marks(char *run, size_t n)
{
    int32_t codes[FEW];
    size_t count = 0;
    for (size_t from = 0, bytes; from < n; from += bytes) {
        int32_t code = (int32_t)tec_utf8_get(run + from, &bytes);
        size_t at = count++;
        for (; at > 0 && combining(codes[at - 1]) > combining(code); at--)
            codes[at] = codes[at - 1];
        codes[at] = code;
    }
    for (size_t i = 0, to = 0; i < count; i++)
        to += tec_utf8_put(run + to, (uint32_t)codes[i]);
}

/* Counting sort: it is stable and there are 256 combining classes. */
static void count_marks(char *run, size_t n, char *copy)
{
    size_t start[257] = {0}, bytes;
    memcpy(copy, run, n);
    for (size_t at = 0; at < n; at += bytes) {
        int32_t code = (int32_t)tec_utf8_get(copy + at, &bytes);
        start[combining(code) + 1] += bytes;
    }
    for (size_t c = 1; c < 257; c++)
        start[c] += start[c - 1];
    for (size_t at = 0; at < n; at += bytes) {
        size_t *to = &start[combining((int32_t)tec_utf8_get(copy + at, &bytes))];
        memcpy(run + *to, copy + at, bytes);
        *to += bytes;
    }
}

static bool order_run(char *run, size_t n, struct tec_arena *scratch)
{
    if (n <= FEW) {
        insert_marks(run, n);
        return true;
    }
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    char *copy = TEC_NEW(scratch, n, char);
    if (!copy)
        return false;
    count_marks(run, n, copy);
    tec_arena_rewind(scratch, mark);
    return true;
}

bool tec_unicode_order(char *text, size_t n, struct tec_arena *scratch)
{
    size_t start = 0, bytes; /* of the run of marks that ends at `at` */
    unsigned last = 0;
    bool mixed = false;
    for (size_t at = 0; at <= n; at += bytes) {
        unsigned class = at < n ? combining((int32_t)tec_utf8_get(text + at, &bytes)) : 0;
        if (class == 0) {
            if (mixed && !order_run(text + start, at - start, scratch))
                return false;
            if (at == n)
                break;
            start = at + bytes;
            mixed = false;
        }
        mixed |= class<last &&class> 0;
        last = class;
    }
    return true;
}

/* True if each character is its own form and none combines: below U+0300 where nothing is left
 * decomposed, else ASCII. */
static bool is_plain(const char *text, size_t n, unsigned form)
{
    unsigned char most = form == TEC_FORM_COMPOSED ? 0xCC : 0x80;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= most)
            return false;
    return true;
}

/* The one code that two become, or -1. */
static int32_t joined(int32_t first, int32_t second)
{
    int32_t two[2] = {first, second};
    return second >= 0x300 &&
                   utf8proc_normalize_utf32(two, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1
               ? two[0]
               : -1;
}

/* Compose a character with the marks behind it, which are in order, in place: what they become is
 * never longer. A mark is passed over by those of greater classes alone. */
static void compose(struct tec_bytes *out, size_t run)
{
    size_t size, bytes;
    int32_t first = (int32_t)tec_utf8_get(out->at + run, &size);
    size_t to = run + size; /* behind the marks that stay */
    unsigned most = 0;      /* the greatest class of one that stays */
    for (size_t at = to; at < out->n; at += bytes) {
        int32_t code = (int32_t)tec_utf8_get(out->at + at, &bytes), both = -1;
        unsigned class = combining(code);
        if (class > most)
            both = joined(first, code);
        if (both < 0) {
            memmove(out->at + to, out->at + at, bytes);
            to += bytes;
            most = class;
            continue;
        }
        char one[4];
        size_t left = to - run - size, now = tec_utf8_put(one, (uint32_t)both);
        memmove(out->at + run + now, out->at + run + size, left);
        memcpy(out->at + run, one, now);
        first = both;
        size = now;
        to = run + now + left;
    }
    out->n = to;
}

/* What of a text is done: all but the last run, a character and the marks behind it. */
struct form {
    struct tec_bytes *out;
    size_t run;    /* where it begins in `out` */
    unsigned last; /* class of its last mark; 0: it has none */
    bool mixed;    /* its marks are not in order */
    bool composed;
};

static void close_run(struct form *f)
{
    struct tec_bytes *out = f->out;
    if (out->failed || out->full || f->run == out->n)
        return;
    if (f->mixed && !tec_unicode_order(out->at + f->run, out->n - f->run, out->arena))
        out->failed = true;
    else if (f->composed && f->last)
        compose(out, f->run);
}

static void add_code(struct tec_bytes *out, int32_t code)
{
    char one[4];
    tec_bytes_add(out, one, tec_utf8_put(one, (uint32_t)code));
}

/* A character that is no mark, or a mark that came late, begins a run: but where the run before it
 * is one character and the two compose, as syllables of Hangul do. No late mark does. */
static void begin_run(struct form *f, int32_t code)
{
    struct tec_bytes *out = f->out;
    size_t bytes;
    close_run(f);
    f->last = 0;
    f->mixed = false;
    if (f->composed && !out->failed && !out->full && out->n > f->run && !is_late_mark(code)) {
        int32_t before = (int32_t)tec_utf8_get(out->at + f->run, &bytes);
        int32_t both = bytes == out->n - f->run ? joined(before, code) : -1;
        if (both >= 0) {
            out->n = f->run;
            code = both;
        }
    }
    f->run = out->n;
    add_code(out, code);
}

enum { DECOMPOSED_CODES = 24 /* the longest decomposition is 18 */ };

static void decompose(struct form *f, int32_t code, utf8proc_option_t options)
{
    int32_t parts[DECOMPOSED_CODES];
    int boundary = 0;
    utf8proc_ssize_t got = 0;
    if (IS_IN(decomposed, code))
        got = utf8proc_decompose_char(code, parts, DECOMPOSED_CODES, options, &boundary);
    if (got < 1 || got > DECOMPOSED_CODES) {
        parts[0] = code;
        got = 1;
    }
    for (utf8proc_ssize_t i = 0; i < got; i++) {
        unsigned class = combining(parts[i]);
        if (class == 0) {
            begin_run(f, parts[i]);
            continue;
        }
        f->mixed |= class < f->last;
        f->last = class;
        add_code(f->out, parts[i]);
    }
}

/* Most bytes by which a run is longer than what it composes to: a character takes three marks. */
enum { COMPOSED_LESS = 16 };

void tec_unicode_form(struct tec_bytes *out, const char *text, size_t n, unsigned form)
{
    if (is_plain(text, n, form)) {
        tec_bytes_add(out, text, n);
        return;
    }
    const utf8proc_option_t options =
        form & TEC_FORM_COMPATIBLE ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    struct form f = {.out = out, .run = out->n, .composed = form & TEC_FORM_COMPOSED};
    size_t limit = out->limit, bytes;
    out->limit += limit ? COMPOSED_LESS : 0; /* the last run is not composed yet */
    for (size_t at = 0; at < n && !out->failed && !out->full; at += bytes)
        decompose(&f, (int32_t)tec_utf8_get(text + at, &bytes), options);
    close_run(&f);
    out->limit = limit;
    out->full |= limit && out->n > limit;
}

bool tec_unicode_mark(uint32_t code)
{
    return IS_IN(marks, code);
}

bool tec_unicode_bert_mark(uint32_t code)
{
    return IS_IN(bert_marks, code);
}

bool tec_unicode_nmt_dropped(uint32_t code)
{
    return IS_IN(nmt_dropped, code);
}

bool tec_unicode_nmt_space(uint32_t code)
{
    return IS_IN(nmt_spaces, code);
}

/* The one small letter of a code point, or itself. */
static int32_t small(uint32_t code)
{
    const struct capitals *c = FIND(capitals, code);
    return (int32_t)code + (c && (code - c->of.first) % c->step == 0 ? c->far : 0);
}

void tec_unicode_lower_each(struct tec_bytes *out, const char *text, size_t n)
{
    for (size_t at = 0, bytes; at < n; at += bytes) {
        uint32_t code = tec_utf8_get(text + at, &bytes);
        add_code(out, code == 0x130 ? 'i' : small(code));
        if (code == 0x130) /* the one that becomes two */
            add_code(out, 0x307);
    }
}
