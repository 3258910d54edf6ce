/* inspect_text.c - the report of an inspection as lines. */
#include "base/byte_text.h"
#include "base/escape.h"
#include "tools/measure/inspect.h"

#include <string.h>

static const char *text_of(const json_t *report, const char *key)
{
    const char *text = json_string_value(json_object_get(report, key));
    return text ? text : "-";
}

/* Names are of the file: nothing in them may reach the terminal but as text. */
static void print_name(const char *before, const char *name, const char *after, FILE *out)
{
    fputs(before, out);
    tec_escape_print(out, name ? name : "-");
    fputs(after, out);
}

static void print_shape(const json_t *shape, FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < json_array_size(shape); i++)
        fprintf(out, "%s%lld", i ? ", " : "",
                (long long)json_integer_value(json_array_get(shape, i)));
    fputc(']', out);
}

static void print_sizes(const json_t *sizes, FILE *out)
{
    const char *part, *key;
    json_t *values, *value;
    json_object_foreach((json_t *)(uintptr_t)sizes, part, values)
    {
        fprintf(out, "  %-9s", part);
        json_object_foreach(values, key, value)
            fprintf(out, " %s %lld", key, (long long)json_integer_value(value));
        fputc('\n', out);
    }
}

static void print_dtypes(const json_t *dtypes, FILE *out)
{
    const char *name;
    json_t *entry;
    char bytes[24];
    json_object_foreach((json_t *)(uintptr_t)dtypes, name, entry)
        fprintf(out, "  %-9s %lld tensors, %s\n", name,
                (long long)json_integer_value(json_object_get(entry, "tensors")),
                tec_byte_text(bytes, json_integer_value(json_object_get(entry, "bytes"))));
}

static void print_tokenizer(const json_t *t, FILE *out)
{
    if (!json_is_object(t)) {
        fputs("tokenizer  none\n", out);
        return;
    }
    const char *error = json_string_value(json_object_get(t, "error"));
    print_name("tokenizer  ", text_of(t, "path"), "\n", out);
    if (error) {
        print_name("  cannot be read: ", error, "\n", out);
        return;
    }
    fprintf(out, "  %s, %lld ids", text_of(t, "kind"),
            (long long)json_integer_value(json_object_get(t, "size")));
    static const char *const names[] = {"bos", "eos", "pad", "unk"};
    for (int i = 0; i < 4; i++)
        fprintf(out, ", %s %lld", names[i],
                (long long)json_integer_value(json_object_get(t, names[i])));
    fputc('\n', out);
}

static void print_norms(const json_t *norms, FILE *out)
{
    for (size_t i = 0; i < json_array_size(norms); i++) {
        const json_t *n = json_array_get(norms, i), *modes = json_object_get(n, "modes");
        const char *asset = json_string_value(json_object_get(n, "asset"));
        print_name("norm       ", asset ? asset : "", asset ? "/" : "", out);
        print_name("", text_of(n, "key"), "", out);
        fprintf(out, ": %lld values,", (long long)json_integer_value(json_object_get(n, "size")));
        for (size_t m = 0; m < json_array_size(modes); m++)
            fprintf(out, " %s", json_string_value(json_array_get(modes, m)));
        fputc('\n', out);
    }
}

static const char *rows_of(const char *pool)
{
    static const char *const rows[][2] = {{"mean", "the mean of their rows"},
                                          {"cls", "their first row"},
                                          {"lasttoken", "their last row"}};
    size_t i = 0;
    while (i < 2 && strcmp(rows[i][0], pool) != 0)
        i++;
    return rows[i][1];
}

static void print_encoder(const json_t *e, FILE *out)
{
    const char *prompt = json_string_value(json_object_get(e, "prompt"));
    const char *error = json_string_value(json_object_get(e, "error"));
    if (!e)
        return;
    if (error) {
        print_name("encoder    does not run here: ", error, "\n", out);
        return;
    }
    json_int_t tokens = json_integer_value(json_object_get(e, "max_tokens"));
    fputs("encoder    texts of at most ", out);
    if (tokens)
        fprintf(out, "%lld tokens", (long long)tokens);
    else
        fputs("as many tokens as the model has positions", out);
    fprintf(out, ", %s%s\n", rows_of(text_of(e, "pool")),
            json_is_true(json_object_get(e, "unit")) ? ", length 1" : "");
    if (prompt)
        print_name("  behind the prompt \"", prompt, "\"\n", out);
}

static void print_names(const char *title, const json_t *names, FILE *out)
{
    enum { SHOWN = 20 };
    size_t n = json_array_size(names);
    fprintf(out, "%-10s %zu\n", title, n);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        print_name("  ", json_string_value(json_array_get(names, i)), "\n", out);
    if (n > SHOWN)
        fprintf(out, "  and %zu more (--format json lists all)\n", n - SHOWN);
}

static void print_mismatched(const json_t *list, FILE *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        print_name(i ? "  " : "mismatched\n  ", text_of(e, "name"), " is ", out);
        print_shape(json_object_get(e, "is"), out);
        fputs(", must be ", out);
        print_shape(json_object_get(e, "must"), out);
        fputc('\n', out);
    }
}

static void print_list(const json_t *list, FILE *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        fprintf(out, "%-5s ", text_of(e, "dtype"));
        print_name("", text_of(e, "name"), " ", out);
        print_shape(json_object_get(e, "shape"), out);
        fputc('\n', out);
    }
}

static void print_adapter(const json_t *adapter, FILE *out)
{
    if (!adapter)
        return;
    print_name("adapter    ", text_of(adapter, "path"), "", out);
    fprintf(out, ": changes %lld tensors by rank %lld at most, replaces %lld\n",
            (long long)json_integer_value(json_object_get(adapter, "changed")),
            (long long)json_integer_value(json_object_get(adapter, "rank")),
            (long long)json_integer_value(json_object_get(adapter, "replaced")));
}

/* A line each, as far as there is room in it. */
static void print_texts(const json_t *report, FILE *out)
{
    enum { ROOM = 73 };
    size_t i;
    json_t *one;
    const json_t *texts = json_object_get(report, "texts");
    json_int_t damaged = json_integer_value(json_object_get(report, "damaged"));
    fprintf(out, "texts      %zu\n", json_array_size(texts));
    json_array_foreach(texts, i, one)
    {
        char line[ROOM], more[ROOM + 16];
        size_t n = tec_escape(line, sizeof line, text_of(one, "text"));
        bool cut = tec_escape(more, sizeof more, text_of(one, "text")) > n;
        print_name("  ", text_of(one, "id"), "", out);
        fprintf(out, ", %lld tokens: %s%s\n",
                (long long)json_integer_value(json_object_get(one, "tokens")), line,
                cut ? " ..." : "");
    }
    if (damaged)
        fprintf(out, "damaged    %lld part%s of the file\n", (long long)damaged,
                damaged == 1 ? "" : "s");
    json_array_foreach(json_object_get(report, "damage"), i, one)
        fprintf(out, "  from byte %lld on, %lld bytes: %s\n",
                (long long)json_integer_value(json_object_get(one, "offset")),
                (long long)json_integer_value(json_object_get(one, "bytes")), text_of(one, "what"));
}

static void print_memory(const json_t *report, FILE *out)
{
    const json_t *e = json_object_get(report, "encoder");
    char bytes[24];
    print_name("", text_of(report, "path"), "", out);
    fprintf(out, ": a memory's store, format %lld, %s\n",
            (long long)json_integer_value(json_object_get(report, "format")),
            tec_byte_text(bytes, json_integer_value(json_object_get(report, "bytes"))));
    fprintf(out, "keys       %lld layers, %lld bytes a token and layer, values as many\n",
            (long long)json_integer_value(json_object_get(report, "layers")),
            (long long)json_integer_value(json_object_get(report, "row_bytes")));
    fprintf(out, "model      %s\ntokenizer  %s\ndtype      %s\n", text_of(report, "model"),
            text_of(report, "tokenizer"), text_of(report, "dtype"));
    print_name("encoder    ", json_is_object(e) ? text_of(e, "name") : "not named", "", out);
    if (json_is_object(e))
        fprintf(out, " (%s)", text_of(e, "hash"));
    fprintf(out, ", vectors of %lld numbers\n",
            (long long)json_integer_value(json_object_get(report, "width")));
    print_texts(report, out);
}

void tec_inspect_print(const json_t *report, FILE *out)
{
    char bytes[24];
    if (strcmp(text_of(report, "layout"), "memory") == 0) {
        print_memory(report, out);
        return;
    }
    if (strcmp(text_of(report, "layout"), "tokenizer") == 0) {
        print_tokenizer(json_object_get(report, "tokenizer"), out);
        return;
    }
    const char *note = json_string_value(json_object_get(report, "note"));
    print_name("", text_of(report, "path"), "", out);
    fprintf(out, ": layout %s, model %s\n", text_of(report, "layout"), text_of(report, "model"));
    if (note)
        print_name("  ", note, "\n", out);
    print_sizes(json_object_get(report, "sizes"), out);
    fprintf(out, "tensors    %lld, %lld values, %s\n",
            (long long)json_integer_value(json_object_get(report, "tensors")),
            (long long)json_integer_value(json_object_get(report, "parameters")),
            tec_byte_text(bytes, json_integer_value(json_object_get(report, "bytes"))));
    print_dtypes(json_object_get(report, "dtypes"), out);
    fprintf(out, "hash       %s (of names, shapes and types)\n", text_of(report, "hash"));
    print_adapter(json_object_get(report, "adapter"), out);
    print_tokenizer(json_object_get(report, "tokenizer"), out);
    print_encoder(json_object_get(report, "encoder"), out);
    print_norms(json_object_get(report, "norm"), out);
    if (json_is_string(json_object_get(report, "model"))) {
        print_names("missing", json_object_get(report, "missing"), out);
        print_names("unexpected", json_object_get(report, "unexpected"), out);
        print_mismatched(json_object_get(report, "mismatched"), out);
    }
    print_list(json_object_get(report, "list"), out);
}
