/* cmd_tokenize.c - lines of text to token ids, and back. */
#include "base/json_text.h"
#include "base/text/tokenizer.h"
#include "tools/cli/command.h"
#include "tools/cli/expect.h"
#include "tools/cli/lines.h"

#include <jansson.h>
#include <string.h>

struct tokenize_options {
    bool decode, json_strings, no_template, literal, keep_special;
};

#define AT(member) offsetof(struct tokenize_options, member)
static const struct tec_option options[] = {
    {"decode", 'd', TEC_OPTION_FLAG, NULL, "lines are ids: [1, 2, 3] or 1 2 3; print their text",
     AT(decode), 0, 0},
    {"json-strings", 'j', TEC_OPTION_FLAG, NULL, "texts are JSON strings, one a line",
     AT(json_strings), 0, 0},
    {"no-template", 0, TEC_OPTION_FLAG, NULL, "leave out the ids a tokenizer.json adds around text",
     AT(no_template), 0, 0},
    {"literal", 0, TEC_OPTION_FLAG, NULL, "special tokens spelt in the text are plain characters",
     AT(literal), 0, 0},
    {"keep-special", 0, TEC_OPTION_FLAG, NULL, "with --decode: special tokens are shown",
     AT(keep_special), 0, 0},
};

struct job {
    const struct tokenize_options *options;
    const struct tec_tokenizer *tokenizer;
    struct tec_arena *arena; /* of one line */
    FILE *out;
};

static enum tec_status encode_text(const struct job *job, const char *text, size_t n,
                                   struct tec_error *err)
{
    struct tec_encode how = {.special = !job->options->no_template,
                             .literal = job->options->literal};
    size_t count = 0;
    TEC_TRY(tec_tokenizer_encode(job->tokenizer, text, n, how, NULL, 0, &count, job->arena, err));
    int *ids = TEC_NEW(job->arena, count + 1, int);
    if (!ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu ids", count);
    TEC_TRY(
        tec_tokenizer_encode(job->tokenizer, text, n, how, ids, count, &count, job->arena, err));
    fputc('[', job->out);
    for (size_t i = 0; i < count; i++)
        fprintf(job->out, "%s%d", i ? ", " : "", ids[i]);
    fputs("]\n", job->out);
    return TEC_OK;
}

static enum tec_status encode_line(const struct job *job, const char *line, size_t n,
                                   struct tec_error *err)
{
    if (!job->options->json_strings)
        return encode_text(job, line, n, err);
    json_error_t where;
    json_t *string = json_loadb(line, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
    enum tec_status status =
        json_is_string(string)
            ? encode_text(job, json_string_value(string), json_string_length(string), err)
            : tec_fail(err, TEC_MALFORMED, "this is not a JSON string: %s",
                       string ? "another type" : where.text);
    json_decref(string);
    return status;
}

static enum tec_status decode_ids(const struct job *job, const int *ids, size_t n,
                                  struct tec_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    TEC_TRY(tec_tokenizer_decode(job->tokenizer, ids, n, !job->options->keep_special, job->arena,
                                 &text, &bytes, err));
    if (job->options->json_strings) {
        json_t *string = json_stringn(text, bytes);
        enum tec_status status = tec_json_print(job->out, string, JSON_ENCODE_ANY, "a text", err);
        json_decref(string);
        return status;
    }
    fwrite(text, 1, bytes, job->out);
    fputc('\n', job->out);
    return TEC_OK;
}

/* Ids of the line "[1, 2]" or "1 2"; there are no more of them than bytes. */
static enum tec_status parse_ids(const struct job *job, const char *line, size_t n, int **ids,
                                 size_t *count, struct tec_error *err)
{
    int size = tec_tokenizer_size(job->tokenizer);
    size_t at = strspn(line, " \t");
    bool array = line[at] == '[';
    *ids = TEC_NEW(job->arena, n / 2 + 2, int);
    *count = 0;
    if (!*ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the ids of a line");
    for (at += array; *(line + (at += strspn(line + at, array ? ", \t" : " \t")));) {
        if (array && line[at] == ']')
            return line[at + 1 + strspn(line + at + 1, " \t")]
                       ? tec_fail(err, TEC_MALFORMED, "column %zu: text after the array", at + 2)
                       : TEC_OK;
        int64_t id = 0;
        size_t digits = strspn(line + at, "0123456789");
        for (size_t i = 0; i < digits && id < 1 << 30; i++)
            id = id * 10 + (line[at + i] - '0');
        if (digits == 0)
            return tec_fail(err, TEC_MALFORMED, "column %zu: an id is a whole number from 0 on",
                            at + 1);
        if (id >= size)
            return tec_fail(err, TEC_MALFORMED, "column %zu: id %.*s; this tokenizer has %d",
                            at + 1, digits > 20 ? 20 : (int)digits, line + at, size);
        (*ids)[(*count)++] = (int)id;
        at += digits;
    }
    if (array || at < n)
        return tec_fail(err, TEC_MALFORMED, "column %zu: the array does not end", at + 1);
    return TEC_OK;
}

static enum tec_status do_line(const struct job *job, const struct tec_lines *lines,
                               struct tec_error *err)
{
    int *ids = NULL;
    size_t n = 0;
    if (!job->options->decode)
        return encode_line(job, lines->text, lines->n, err);
    TEC_TRY(parse_ids(job, lines->text, lines->n, &ids, &n, err));
    return decode_ids(job, ids, n, err);
}

static enum tec_status do_lines(struct tec_invocation *call, const struct tec_tokenizer *tokenizer,
                                struct tec_error *err)
{
    struct tec_lines lines = {.heap = call->heap, .in = stdin};
    struct tec_arena arena;
    tec_arena_init(&arena, call->heap);
    struct job job = {call->options, tokenizer, &arena, call->out};
    enum tec_status status = TEC_OK;
    bool more = true;
    while (status == TEC_OK && more && !ferror(call->out)) {
        status = tec_lines_next(&lines, &more, err);
        if (status == TEC_OK && more)
            status = tec_context(err, do_line(&job, &lines, err), "standard input, line %lld",
                                 (long long)lines.number);
        tec_arena_finish(&arena);
    }
    tec_lines_finish(&lines);
    return status;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const char *path = call->args.item[0];
    const struct tokenize_options *o = call->options;
    if (o->decode && (o->literal || o->no_template))
        return tec_fail(err, TEC_INVALID, "--decode: --literal and --no-template are for encoding");
    if (o->keep_special && !o->decode)
        return tec_fail(err, TEC_INVALID, "--keep-special: only with --decode");
    struct tec_tokenizer *tokenizer = NULL;
    TEC_TRY(tec_expect_tokenizer(&tokenizer, path, call->heap, err));
    enum tec_status status = do_lines(call, tokenizer, err);
    tec_tokenizer_close(tokenizer);
    return status;
}

const struct tec_command tec_command_tokenize = {
    .usage = "tokenize [options] PATH < LINES",
    .about =
        "PATH is a tokenizer.json, tokenizer.model, vocab.json, vocab.txt or a folder with one.\n"
        "Prints one JSON array of ids for each line of standard input; with --decode one text\n"
        "for each line of ids.\n",
    .example = "  echo 'pick up the red cup' | tectum tokenize tests/golden/tokenizers/gemma_like\n"
               "  echo '[17, 42]' | tectum tokenize --decode tests/golden/tokenizers/gemma_like\n",
    .takes = TEC_TAKES_FORMAT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct tokenize_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a tokenizer",
    .offers = "FILE",
    .run = run,
};
