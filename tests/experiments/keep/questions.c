/* questions.c - a question is an object in a line: {prefix, segments, query, answer}. */
#include "tests/experiments/keep/questions.h"

#include "tests/experiments/keep/keeping.h"

#include <jansson.h>
#include <string.h>

enum { MOST = 4096, LINES = 100000, LINE = 1 << 16 };

struct reader {
    const struct tec_tokenizer *tokenizer;
    struct tec_arena *arena;
    int n, room;
    int *ids;
};

/* Append a text's tokens. */
static enum tec_status add(struct reader *r, const json_t *text, struct tec_error *err)
{
    size_t n = 0;
    const struct tec_encode how = {.literal = false};
    if (!json_is_string(text))
        return tec_fail(err, TEC_MALFORMED, "a text is missing");
    TEC_TRY(tec_tokenizer_encode(r->tokenizer, json_string_value(text), json_string_length(text),
                                 how, r->ids + r->n, (size_t)(r->room - r->n), &n, r->arena, err));
    if (n > (size_t)(r->room - r->n))
        return tec_fail(err, TEC_MALFORMED, "more than %d tokens", r->room);
    r->n += (int)n;
    return TEC_OK;
}

static int *keep_ids(struct reader *r, int from)
{
    int *copy = TEC_NEW(r->arena, (size_t)(r->n - from) + 1, int);
    if (copy)
        memcpy(copy, r->ids + from, (size_t)(r->n - from) * sizeof *copy);
    return copy;
}

static enum tec_status read_question(struct reader *r, const json_t *line, int eos,
                                     struct tec_keeping_question *q, struct tec_error *err)
{
    const json_t *segments = json_object_get(line, "segments");
    size_t n = json_array_size(segments);
    if (n < 1 || n > TEC_KEEPING_SEGMENTS)
        return tec_fail(err, TEC_MALFORMED, "%zu segments; the suite takes 1 to %d", n,
                        TEC_KEEPING_SEGMENTS);
    struct tec_segment_range *places = TEC_NEW(r->arena, n, struct tec_segment_range);
    r->n = 0;
    TEC_TRY(add(r, json_object_get(line, "prefix"), err));
    for (size_t u = 0; places && u < n; u++) {
        places[u].begin = r->n;
        TEC_TRY(add(r, json_array_get(segments, u), err));
        places[u].end = r->n;
        if (places[u].begin == places[u].end)
            return tec_fail(err, TEC_MALFORMED, "segment %zu has no tokens", u);
    }
    *q = (struct tec_keeping_question){.query = r->n, .n_segments = (int)n, .segments = places};
    TEC_TRY(add(r, json_object_get(line, "query"), err));
    q->n = r->n;
    q->ids = keep_ids(r, 0);
    TEC_TRY(add(r, json_object_get(line, "answer"), err));
    if (r->n == r->room || q->n == q->query)
        return tec_fail(err, TEC_MALFORMED, "no query, or more than %d tokens", r->room);
    r->ids[r->n++] = eos;
    q->n_answer = r->n - q->n;
    q->answer = keep_ids(r, q->n);
    return places && q->ids && q->answer ? TEC_OK
                                         : tec_fail(err, TEC_NO_MEMORY, "no memory for questions");
}

static enum tec_status read_line(struct tec_keeping_questions *out, struct reader *r,
                                 const char *text, int eos, struct tec_error *err)
{
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!line)
        return tec_fail(err, TEC_MALFORMED, "not an object of JSON");
    enum tec_status status = read_question(r, line, eos, &out->items[out->n], err);
    json_decref(line);
    out->most = r->n > out->most ? r->n : out->most;
    out->n += status == TEC_OK;
    return status;
}

static enum tec_status read_lines(struct tec_keeping_questions *out, struct reader *r, FILE *file,
                                  int eos, int limit, struct tec_error *err)
{
    char *text = TEC_NEW(r->arena, LINE, char);
    out->items = TEC_NEW(r->arena, (size_t)limit, struct tec_keeping_question);
    r->ids = TEC_NEW(r->arena, MOST, int);
    if (!text || !out->items || !r->ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for questions");
    while (out->n < limit && fgets(text, LINE, file)) {
        enum tec_status status = read_line(out, r, text, eos, err);
        TEC_TRY(tec_context(err, status, "line %d", out->n + 1));
    }
    return out->n ? TEC_OK : tec_fail(err, TEC_MALFORMED, "there are no questions");
}

enum tec_status tec_keeping_read(struct tec_keeping_questions *out, const char *dir,
                                 const struct tec_tokenizer *tokenizer, int eos, int limit,
                                 struct tec_arena *arena, struct tec_error *err)
{
    struct reader r = {.tokenizer = tokenizer, .arena = arena, .room = MOST};
    const char *path = tec_arena_printf(arena, "%s/questions.jsonl", dir);
    FILE *file = path ? fopen(path, "r") : NULL;
    *out = (struct tec_keeping_questions){.n = 0};
    if (!file)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s/questions.jsonl: cannot be read; --weights takes a checkpoint with "
                        "questions beside it",
                        dir);
    enum tec_status status =
        read_lines(out, &r, file, eos, limit > 0 && limit < LINES ? limit : LINES, err);
    fclose(file);
    return tec_context(err, status, "%s", path);
}
