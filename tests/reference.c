/* reference.c - the generated parts of documents: the language of pipeline files as Markdown and as
 * an editor's stub, and the tables of hooks and views of policies. All are made from the lists that
 * the code itself is made from; the tests say whether the documents have them.
 *
 * `reference.t --write` writes all of them anew. */
#include "graph/load/fields.h"
#include "graph/load/pipeline.h"
#include "tests/tap.h"

#include <stdlib.h>

static void print_words(const struct tec_word *words, const char *quote, const char *between,
                        FILE *out)
{
    for (const struct tec_word *w = words; w->word; w++)
        if (tec_load_word_of(words, w->value) == w->word) /* else it is another one's */
            fprintf(out, "%s%s%s%s", w == words ? "" : between, quote, w->word, quote);
}

static void print_range(const struct tec_field *f, FILE *out)
{
    if (f->max > 0)
        fprintf(out, ", %.10g to %.10g", f->min, f->max);
}

static void print_type(const struct tec_field *f, FILE *out)
{
    static const char *const names[] = {
        [TEC_FIELD_NAME] = "name",
        [TEC_FIELD_STRING] = "text",
        [TEC_FIELD_INT] = "integer",
        [TEC_FIELD_INT64] = "integer",
        [TEC_FIELD_NUMBER] = "number",
        [TEC_FIELD_BOOL] = "true or false",
        [TEC_FIELD_BYTES] = "bytes",
        [TEC_FIELD_WORD] = "",
        [TEC_FIELD_REF] = "reference",
        [TEC_FIELD_REFS] = "list of references",
        [TEC_FIELD_TEXTS] = "list of texts",
        [TEC_FIELD_STOPS] = "text, or list of texts",
        [TEC_FIELD_SHAPE] = "sizes",
        [TEC_FIELD_AXIS] = "ascending integers",
        [TEC_FIELD_RATIOS] = "ascending numbers",
        [TEC_FIELD_ONE] = "",
        [TEC_FIELD_OUT] = "buffer, or `stream`",
        [TEC_FIELD_SPAWN] = "`every(n)`, `on_change()`, `on_change(\"value\")`, `on_request()`",
        [TEC_FIELD_WHEN] = "`policy()`",
        [TEC_FIELD_OBJECT] = "table",
        [TEC_FIELD_ROBOT] = "path or table",
        [TEC_FIELD_ROBOTS] = "table of paths or tables",
        [TEC_FIELD_THINGS] = "list of "};
    fputs(names[f->type], out);
    if (f->words)
        print_words(f->words, "`", ", ", out);
    else if (f->type != TEC_FIELD_BYTES && f->type != TEC_FIELD_REFS)
        print_range(f, out);
}

static void print_constructor(enum tec_constructor con, FILE *out)
{
    const struct tec_constructor_info *info = &tec_constructors[con];
    fprintf(out, "\n### %s\n\n%s\n\n", info->word, info->doc);
    fputs("| field | type | default | meaning |\n|---|---|---|---|\n", out);
    for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con); f++) {
        fprintf(out, "| `%s` | ", f->name);
        print_type(f, out);
        const char *standard = !f->standard ? "**required**" : f->standard[0] ? NULL : "-";
        if (standard)
            fprintf(out, " | %s | %s |\n", standard, f->doc);
        else
            fprintf(out, " | `%s` | %s |\n", f->standard, f->doc);
    }
}

static void print_pipelines(FILE *out)
{
    fputs("## Constructors and their fields\n", out);
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++)
        if (tec_constructors[i].size > 0)
            print_constructor((enum tec_constructor)i, out);
    fputs("\n## Other words\n\n| written | meaning |\n|---|---|\n", out);
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++)
        if (tec_constructors[i].usage)
            fprintf(out, "| `%s` | %s |\n", tec_constructors[i].usage, tec_constructors[i].doc);
    fputs("\n## Codes\n\n| code | meaning |\n|---|---|\n", out);
    for (int i = 0; i < TEC_CODES; i++)
        fprintf(out, "| %s | %s |\n", tec_code_name((enum tec_code)i),
                tec_code_meaning((enum tec_code)i));
}

/* "kv.frame" -> "kv_frame": a dot would be a member of a class. */
static void print_class(const char *word, FILE *out)
{
    fputs("tectum.", out);
    for (; *word; word++)
        fputc(*word == '.' ? '_' : *word, out);
}

static void print_lua_type(const struct tec_field *f, FILE *out)
{
    static const char *const names[] = {[TEC_FIELD_NAME] = "string",
                                        [TEC_FIELD_STRING] = "string",
                                        [TEC_FIELD_INT] = "integer",
                                        [TEC_FIELD_INT64] = "integer",
                                        [TEC_FIELD_NUMBER] = "number",
                                        [TEC_FIELD_BOOL] = "boolean",
                                        [TEC_FIELD_BYTES] = "string|integer",
                                        [TEC_FIELD_WORD] = "",
                                        [TEC_FIELD_REF] = "string|tectum.call",
                                        [TEC_FIELD_REFS] = "string[]",
                                        [TEC_FIELD_TEXTS] = "string[]",
                                        [TEC_FIELD_STOPS] = "string|string[]",
                                        [TEC_FIELD_SHAPE] = "integer[]",
                                        [TEC_FIELD_AXIS] = "integer[]",
                                        [TEC_FIELD_RATIOS] = "number[]",
                                        [TEC_FIELD_ONE] = "",
                                        [TEC_FIELD_OUT] = "string|tectum.call",
                                        [TEC_FIELD_SPAWN] = "tectum.call",
                                        [TEC_FIELD_WHEN] = "tectum.call",
                                        [TEC_FIELD_OBJECT] = "table",
                                        [TEC_FIELD_ROBOT] = "string|tectum.robot",
                                        [TEC_FIELD_ROBOTS] = "table<string, string|tectum.robot>",
                                        [TEC_FIELD_THINGS] = ""};
    fputs(names[f->type], out);
    if (f->type == TEC_FIELD_WORD)
        print_words(f->words, "\"", "|", out);
    if (f->type != TEC_FIELD_ONE && f->type != TEC_FIELD_THINGS)
        return;
    fputs(f->type == TEC_FIELD_THINGS ? "(" : "", out);
    for (const struct tec_word *w = f->words; w->word; w++) {
        fputs(w == f->words ? "" : "|", out);
        print_class(w->word, out);
    }
    fputs(f->type == TEC_FIELD_THINGS ? ")[]" : "", out);
}

static void print_stub(enum tec_constructor con, FILE *out)
{
    const struct tec_constructor_info *info = &tec_constructors[con];
    fprintf(out, "\n---%s\n---@class ", info->doc);
    print_class(info->word, out);
    fputc('\n', out);
    for (const struct tec_field *f = tec_load_fields_of(con); tec_field_more(f, con); f++) {
        fprintf(out, "---@field %s%s ", f->name, f->standard ? "?" : "");
        print_lua_type(f, out);
        fprintf(out, " %s", f->doc);
        if (f->standard && f->standard[0])
            fprintf(out, "; default %s", f->standard);
        fputc('\n', out);
        if (con == TEC_CON_pipeline && strcmp(f->name, "models") == 0)
            fputs("---@field model? tectum.model the form for one model\n", out);
    }
    fputs("\n---@param t ", out);
    print_class(info->word, out);
    fputs("\n---@return ", out);
    print_class(info->word, out);
    fprintf(out, "\nfunction %s(t) end\n", info->word);
}

/* --- robots ---------------------------------------------------------------------------------- */

/* Lines of robot_fields.def: a table, or a field of the last one. */
static const struct robot_line {
    const char *table, *place, *field, *type, *standard, *text;
} robot_lines[] = {
#define TABLE(id, place, text) {#id, place, NULL, NULL, NULL, text},
#define FIELD(name, type, standard, text) {NULL, NULL, name, type, standard, text},
#define END
#include "graph/transform/robot_fields.def"
#undef TABLE
#undef FIELD
#undef END
};
enum { ROBOT_LINES = sizeof robot_lines / sizeof robot_lines[0] };

static void print_robot_stubs(FILE *out)
{
    for (size_t i = 0; i < ROBOT_LINES; i++) {
        const struct robot_line *l = &robot_lines[i];
        if (l->table) {
            bool whole = l->place[0] == '\0';
            fprintf(out, "\n---%s\n---@class tectum.robot%s%s\n", l->text, whole ? "" : "_",
                    whole ? "" : l->table);
            continue;
        }
        fprintf(out, "---@field %s%s %s %s", l->field, l->standard ? "?" : "", l->type, l->text);
        if (l->standard && l->standard[0])
            fprintf(out, "; default %s", l->standard);
        fputc('\n', out);
    }
}

/* A type of the editors' stub as a cell: each of its alternatives is code, a bar within one is
 * escaped. */
static void print_cell(const char *type, FILE *out)
{
    int depth = 0;
    fputc('`', out);
    for (; *type; type++) {
        depth += (*type == '(') - (*type == ')');
        if (*type == '|' && depth == 0)
            fputs("`, `", out);
        else
            fprintf(out, "%s%c", *type == '|' ? "\\" : "", *type);
    }
    fputc('`', out);
}

static void print_robots(FILE *out)
{
    fputs("## Every field of a description\n", out);
    for (size_t i = 0; i < ROBOT_LINES; i++) {
        const struct robot_line *l = &robot_lines[i];
        if (l->table) {
            fprintf(out, "\n### `%s`\n\n%s\n\n", l->place[0] ? l->place : "robot", l->text);
            fputs("| field | type | default | meaning |\n|---|---|---|---|\n", out);
            continue;
        }
        fprintf(out, "| `%s` | ", l->field);
        print_cell(l->type, out);
        if (l->standard && l->standard[0])
            fprintf(out, " | `%s` | %s |\n", l->standard, l->text);
        else
            fprintf(out, " | %s | %s |\n", l->standard ? "-" : "**required**", l->text);
    }
}

static void print_all_stubs(FILE *out)
{
    static const char *const arguments[] = {"name string",
                                            "name string|table",
                                            "frames integer",
                                            "value string|nil",
                                            NULL,
                                            NULL,
                                            "name string",
                                            NULL,
                                            "path string"};
    fputs("---@meta\n-- Pipeline files for editors (LuaLS). Generated: do not edit.\n\n"
          "---@class tectum.call\n\nkv = {}\n",
          out);
    print_robot_stubs(out);
    for (int i = TEC_CON_NONE + 1; i < TEC_CONSTRUCTORS; i++) {
        const struct tec_constructor_info *info = &tec_constructors[i];
        if (info->size > 0) {
            print_stub((enum tec_constructor)i, out);
            continue;
        }
        int call = i - TEC_CON_prev;
        bool known = call >= 0 && call < (int)(sizeof arguments / sizeof arguments[0]);
        const char *argument = known ? arguments[call] : NULL;
        fprintf(out, "\n---%s\n", info->doc);
        if (i == TEC_CON_extend) {
            fputs("---@param path string\n---@param changes table\n---@return tectum.pipeline\n"
                  "function extend(path, changes) end\n",
                  out);
            continue;
        }
        if (argument)
            fprintf(out, "---@param %s\n", argument);
        fprintf(out, "---@return %s\n", i == TEC_CON_include ? "any" : "tectum.call");
        fprintf(out, "function %s(%.*s) end\n", info->word,
                argument ? (int)strcspn(argument, " ") : 0, argument ? argument : "");
    }
}

/* --- policies -------------------------------------------------------------------------------- */

static const char hook_tables[] =
    "### Hooks\n\n| Hook | Arguments | Meaning | Without it |\n|---|---|---|---|\n"
#define HOOK(name, args, meaning, without) \
    "| `" #name "` | `" args "` | " meaning " | " without " |\n"
#include "policies/hooks.def"
    "\n### Decisions\n\n| Call | Effect |\n|---|---|\n"
#define DECISION(name, args, effect) "| `D:" #name "(" args ")` | " effect " |\n"
#include "policies/hooks.def"
    ;

/* The text is in two parts, because compilers need not accept longer string literals. */
static const char view_tables[] =
    "\n### F, the frame\n\n| Field | Meaning |\n|---|---|\n"
#define FRAME(name, member, kind, meaning) "| `F." #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.req[i], a request\n\n| Field | Meaning |\n|---|---|\n"
#define REQUEST(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### R and F.last, what a frame came to\n\n| Field | Meaning |\n|---|---|\n"
#define RESULT(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "| `node_us` | microseconds by name of node, 0 if it did not run |\n"
    "\n### F.seg[i], a segment of memory\n\n| Field | Meaning |\n|---|---|\n"
#define SEGMENT(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.gpu, the device\n\n| Field | Meaning |\n|---|---|\n"
#define DEVICE(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    "\n### F.kv(name), a resource\n\n| Field | Meaning |\n|---|---|\n"
#define POOL(name, member, kind, meaning) "| `" #name "` | " meaning " |\n"
#include "policies/views.def"
    ;

static void print_policies(FILE *out)
{
    fprintf(out, "%s%s", hook_tables, view_tables);
}

/* --- the words of models --------------------------------------------------------------------- */

/* Lines of words.def: a word, or with a key one of its options. */
static const struct {
    const char *word, *key, *text;
    int operands;
    bool needed;
} builder_lines[] = {
#define WORD(word, operands, text) {#word, NULL, text, operands, false},
#define VALUE(word, operands, text) WORD(word, operands, text)
#define GIVEN(word, name, text)
#define FIELD(word, key, kind, member, needed, text) {#word, #key, text, 0, needed},
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
};

/* How a word is called. */
static void print_call(size_t at, bool options, FILE *out)
{
    static const char *const operands[] = {"", "x", "x, y"};
    int n = builder_lines[at].operands;
    fprintf(out, "\n**`g:%s(%s%s%s)`**\n\n%s.\n", builder_lines[at].word,
            n < 0 ? "{ x, y, ... }" : operands[n], n && options ? ", " : "",
            options ? "{ ... }" : "", builder_lines[at].text);
}

static void print_builder(FILE *out)
{
    enum { LINES = sizeof builder_lines / sizeof builder_lines[0] };
    fprintf(out, "### Words\n\nEach word also takes `name`: that of a tap, and of the command.\n");
    for (size_t i = 0; i < LINES; i++) {
        bool options = i + 1 < LINES && builder_lines[i + 1].key;
        if (builder_lines[i].key) {
            fprintf(out, "| `%s`%s | %s |\n", builder_lines[i].key,
                    builder_lines[i].needed ? "" : ", optional", builder_lines[i].text);
            continue;
        }
        print_call(i, options, out);
        fputs(options ? "\n| Option | Meaning |\n|---|---|\n" : "", out);
    }
}

/* --- the steps of robots ---------------------------------------------------------------------- */

static void print_numbers(const char *a, const char *b, FILE *out)
{
    if (a)
        fprintf(out, "`%s`", a);
    if (b)
        fprintf(out, ", `%s`", b);
}

static void print_steps(FILE *out)
{
    static const struct {
        const char *name, *a, *b, *text;
    } steps[] = {
#define TRANSFORM(name, a, b, text) {#name, a, b, text},
#include "graph/transform/transforms.def"
#undef TRANSFORM
    };
    fputs("### Steps\n\nA step of `ops` or `decode` names its `op`, the entries `at` that it works "
          "on, counted from 1 (all,\nwhere it names none), and its numbers.\n\n"
          "| `op` | Numbers | Effect on an entry x |\n|---|---|---|\n",
          out);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        fprintf(out, "| `%s` | ", steps[i].name);
        print_numbers(steps[i].a, steps[i].b, out);
        fprintf(out, "%s| %s |\n", steps[i].a ? " " : "", steps[i].text);
    }
}

/* --- the documents --------------------------------------------------------------------------- */

/* A file whose text between `from` and `to` is generated: `from` is its beginning, `to` what
 * follows it; NULL: the beginning or end of the file. `shows`: a line of it. */
static const struct document {
    const char *path, *from, *to, *shows;
    void (*print)(FILE *out);
} documents[] = {
    {"doc/pipelines.md", "## Constructors and their fields\n", NULL, "\n### kv.frame\n",
     print_pipelines},
    {"doc/tectum.d.lua", NULL, NULL, "\n---@class tectum.pipeline\n", print_all_stubs},
    {"doc/policies.md", "### Hooks\n", "\n## The sandbox\n", "\n| `D:decode(i, k)` |",
     print_policies},
    {"doc/new-model.md", "### Words\n", "\n## Steps\n", "\n**`g:concat({ x, y, ... })`**\n",
     print_builder},
    {"doc/new-robot.md", "### Steps\n", "\n### Pictures\n", "\n| `multiply` |", print_steps},
    {"doc/new-robot.md", "## Every field of a description\n", NULL, "\n### `cameras[i]`\n",
     print_robots},
};
enum { DOCUMENTS = sizeof documents / sizeof documents[0] };

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

/* The document `is` with its generated part made anew; NULL where that part is not found. */
static char *made_anew(const struct document *d, const char *is)
{
    char *text = NULL;
    size_t n = 0;
    const char *from = d->from ? strstr(is, d->from) : is;
    const char *to = !from ? NULL : d->to ? strstr(from, d->to) : strchr(from, '\0');
    if (!to)
        return NULL;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    fwrite(is, 1, (size_t)(from - is), out);
    d->print(out);
    fputs(to, out);
    fclose(out);
    return text;
}

static void check_document(const struct document *d)
{
    char *is = read_whole(d->path);
    REQUIRE(is);
    char *wanted = made_anew(d, is);
    CHECK(wanted && strstr(wanted, d->shows));
    bool current = wanted && strcmp(is, wanted) == 0;
    if (!current)
        fprintf(stderr, "# %s is stale: reference.t --write\n", d->path);
    CHECK(current);
    free(is);
    free(wanted);
}

TEST(the_page_of_pipelines_is_current)
{
    check_document(&documents[0]);
}

TEST(the_stub_for_editors_is_current)
{
    check_document(&documents[1]);
}

TEST(the_page_of_policies_is_current)
{
    check_document(&documents[2]);
}

TEST(the_page_of_models_is_current)
{
    check_document(&documents[3]);
}

TEST(the_page_of_robots_is_current)
{
    check_document(&documents[4]);
    check_document(&documents[5]);
}

static int write_documents(void)
{
    int rc = 0;
    for (int i = 0; i < DOCUMENTS; i++) {
        char *is = read_whole(documents[i].path);
        char *wanted = is ? made_anew(&documents[i], is) : NULL;
        FILE *out = wanted ? fopen(documents[i].path, "wb") : NULL;
        if (!out || fputs(wanted, out) < 0)
            rc = 1;
        if (out && fclose(out) != 0)
            rc = 1;
        free(is);
        free(wanted);
    }
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return write_documents();
    return tap_main(argc, argv);
}
