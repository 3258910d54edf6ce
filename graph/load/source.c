/* source.c - cut a source into tokens and find things in it. */
#include "graph/load/source.h"

#include <stdlib.h>
#include <string.h>

struct lexer {
    const char *text;
    int n, at, line, line_start;
    bool json;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char peek(const struct lexer *x, int ahead)
{
    if (x->at + ahead >= x->n)
        return '\0';
    return x->text[x->at + ahead];
}

static void step(struct lexer *x)
{
    if (x->text[x->at++] == '\n') {
        x->line++;
        x->line_start = x->at;
    }
}

/* Level of a long bracket "[==[" at the cursor, or -1. */
static int long_level(const struct lexer *x)
{
    int level = 0;
    while (peek(x, 1 + level) == '=')
        level++;
    return peek(x, 0) == '[' && peek(x, 1 + level) == '[' ? level : -1;
}

static bool skip_long(struct lexer *x, int level)
{
    for (int i = 0; i < level + 2; i++)
        step(x);
    while (x->at < x->n) {
        int i = 0;
        if (peek(x, 0) == ']') {
            while (i < level && peek(x, 1 + i) == '=')
                i++;
            if (i == level && peek(x, 1 + i) == ']') {
                x->at += level + 2;
                return true;
            }
        }
        step(x);
    }
    return false;
}

static bool skip_string(struct lexer *x)
{
    char quote = x->text[x->at++];
    while (x->at < x->n && x->text[x->at] != quote) {
        char c = x->text[x->at];
        if (c == '\n')
            return false;
        if (c != '\\') {
            x->at++;
            continue;
        }
        x->at++;
        bool gap = peek(x, 0) == 'z' && !x->json;
        if (x->at < x->n)
            step(x);
        while (gap && x->at < x->n && strchr(" \t\r\n\v\f", x->text[x->at]))
            step(x);
    }
    x->at++;
    return x->at <= x->n;
}

static void skip_number(struct lexer *x)
{
    bool hex = peek(x, 0) == '0' && (peek(x, 1) == 'x' || peek(x, 1) == 'X');
    while (is_word(peek(x, 0)) || peek(x, 0) == '.') {
        char c = x->text[x->at++];
        bool exponent = hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
        if (exponent && (peek(x, 0) == '+' || peek(x, 0) == '-'))
            x->at++;
    }
}

/* Skip space and comments. False when a comment does not end. */
static bool skip_space(struct lexer *x)
{
    for (;;) {
        while (x->at < x->n && x->text[x->at] && strchr(" \t\r\n\v\f", x->text[x->at]))
            step(x);
        if (x->json || peek(x, 0) != '-' || peek(x, 1) != '-')
            return true;
        x->at += 2;
        int level = long_level(x);
        if (level >= 0 && !skip_long(x, level))
            return false;
        while (level < 0 && x->at < x->n && x->text[x->at] != '\n')
            x->at++;
    }
}

/* The next token; *done at the end. */
static bool next_token(struct lexer *x, struct tec_token *t, bool *done)
{
    if (!skip_space(x))
        return false;
    *done = x->at >= x->n;
    if (*done)
        return true;
    char c = x->text[x->at];
    *t = (struct tec_token){
        .begin = x->at, .line = x->line, .col = x->at - x->line_start + 1, .match = -1};
    t->kind = TEC_TOKEN_SYMBOL;
    int level = c == '[' && !x->json ? long_level(x) : -1;
    if (c == '"' || (c == '\'' && !x->json) || level >= 0) {
        t->kind = TEC_TOKEN_STRING;
        if (level >= 0 ? !skip_long(x, level) : !skip_string(x))
            return false;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(x, 1)))) {
        t->kind = TEC_TOKEN_NUMBER;
        skip_number(x);
    } else if (is_word(c)) {
        t->kind = TEC_TOKEN_NAME;
        while (is_word(peek(x, 0)))
            x->at++;
    } else {
        x->at += c && strchr("=<>~", c) && peek(x, 1) == '=' ? 2 : 1;
        if (c && strchr("{([", c))
            t->kind = TEC_TOKEN_OPEN;
        if (c && strchr("})]", c))
            t->kind = TEC_TOKEN_CLOSE;
    }
    t->end = x->at;
    return true;
}

static struct lexer begin(const struct tec_source *s)
{
    return (struct lexer){.text = s->text, .n = (int)s->n, .line = 1, .json = s->json};
}

static char first_byte(const struct tec_source *s, int token)
{
    return s->text[s->tokens[token].begin];
}

static bool is_pair(char open, char close)
{
    return (open == '{' && close == '}') || (open == '(' && close == ')') ||
           (open == '[' && close == ']');
}

static bool pair_brackets(struct tec_source *s, struct tec_arena *arena)
{
    int *stack = TEC_NEW(arena, (size_t)s->n_tokens + 1, int);
    int depth = 0;
    if (!stack)
        return false;
    for (int i = 0; i < s->n_tokens; i++) {
        if (s->tokens[i].kind == TEC_TOKEN_OPEN)
            stack[depth++] = i;
        if (s->tokens[i].kind != TEC_TOKEN_CLOSE)
            continue;
        if (depth == 0 || !is_pair(first_byte(s, stack[depth - 1]), first_byte(s, i))) {
            s->n_tokens = 0;
            return true;
        }
        s->tokens[i].match = stack[--depth];
        s->tokens[stack[depth]].match = i;
    }
    if (depth > 0)
        s->n_tokens = 0;
    return true;
}

bool tec_source_lex(struct tec_source *s, struct tec_arena *arena)
{
    struct tec_token t;
    bool done = false;
    int n = 0;
    s->n_tokens = 0;
    if (s->n > TEC_MAX_SOURCE)
        return true;
    for (struct lexer x = begin(s);; n++) {
        if (!next_token(&x, &t, &done))
            return true;
        if (done)
            break;
    }
    s->tokens = TEC_NEW(arena, (size_t)n + 1, struct tec_token);
    if (!s->tokens)
        return false;
    struct lexer x = begin(s);
    for (int i = 0; i < n; i++)
        next_token(&x, &s->tokens[i], &done);
    s->n_tokens = n;
    return pair_brackets(s, arena);
}

char *tec_source_annotate(const struct tec_source *s, long base, struct tec_arena *arena, size_t *n)
{
    enum { ROOM = 32 };
    size_t braces = 0;
    for (int i = 0; i < s->n_tokens; i++)
        braces += first_byte(s, i) == '{' && s->tokens[i].kind == TEC_TOKEN_OPEN;
    size_t size = s->n + braces * ROOM + 1, used = 0;
    char *out = tec_arena_push(arena, size, 1, 1);
    if (!out)
        return NULL;
    size_t from = 0;
    for (int i = 0; i < s->n_tokens; i++) {
        if (s->tokens[i].kind != TEC_TOKEN_OPEN || first_byte(s, i) != '{')
            continue;
        size_t to = (size_t)s->tokens[i].end;
        memcpy(out + used, s->text + from, to - from);
        used += to - from;
        from = to;
        used += (size_t)snprintf(out + used, ROOM, "[\"" TEC_MARK "\"]=%ld;", base + i);
    }
    memcpy(out + used, s->text + from, s->n - from);
    *n = used + s->n - from;
    return out;
}

static bool word_is(const struct tec_source *s, int token, const char *word)
{
    const struct tec_token *t = &s->tokens[token];
    size_t n = strlen(word);
    return t->kind == TEC_TOKEN_NAME && (size_t)(t->end - t->begin) == n &&
           memcmp(s->text + t->begin, word, n) == 0;
}

static bool any_word(const struct tec_source *s, int token, const char *const words[])
{
    for (; *words; words++)
        if (word_is(s, token, *words))
            return true;
    return false;
}

static bool symbol_is(const struct tec_source *s, int token, char c)
{
    const struct tec_token *t = &s->tokens[token];
    return t->end - t->begin == 1 && t->kind != TEC_TOKEN_NAME && t->kind != TEC_TOKEN_NUMBER &&
           s->text[t->begin] == c;
}

bool tec_source_next(const struct tec_source *s, int open, int *at, struct tec_source_span *span)
{
    /* Commas inside the body of a function do not end an entry. */
    static const char *const openers[] = {"function", "if", "do", "repeat", NULL};
    static const char *const closers[] = {"end", "until", NULL};
    int close = s->tokens[open].match, i = *at, blocks = 0;
    if (i >= close)
        return false;
    *span = (struct tec_source_span){-1, -1, i, i};
    enum tec_token_kind key = s->json ? TEC_TOKEN_STRING : TEC_TOKEN_NAME;
    if (i + 1 < close && symbol_is(s, i + 1, s->json ? ':' : '=') && s->tokens[i].kind == key)
        *span = (struct tec_source_span){i, i, i + 2, i + 2};
    else if (!s->json && i + 3 < close && symbol_is(s, i, '[') && s->tokens[i].match == i + 2 &&
             symbol_is(s, i + 3, '='))
        *span = (struct tec_source_span){i + 1, i + 1, i + 4, i + 4};
    i = span->first;
    while (i < close && (blocks > 0 || !(symbol_is(s, i, ',') || symbol_is(s, i, ';')))) {
        blocks += any_word(s, i, openers) - any_word(s, i, closers);
        span->last = i = s->tokens[i].kind == TEC_TOKEN_OPEN ? s->tokens[i].match : i;
        i++;
    }
    if (span->first >= close)
        return false;
    *at = i + 1;
    return true;
}

bool tec_source_key(const struct tec_source *s, const struct tec_source_span *span,
                    const char **key, int *n)
{
    if (span->key_first < 0)
        return false;
    const struct tec_token *t = &s->tokens[span->key_first];
    int trim = t->kind == TEC_TOKEN_STRING && s->text[t->begin] != '[' ? 1 : 0;
    if (t->kind != TEC_TOKEN_NAME && !trim)
        return false;
    *key = s->text + t->begin + trim;
    *n = t->end - t->begin - 2 * trim;
    return memchr(*key, '\\', (size_t)*n) == NULL;
}

bool tec_source_find_key(const struct tec_source *s, int open, const char *key, int n,
                         struct tec_source_span *span)
{
    if (open < 0 || open >= s->n_tokens || s->tokens[open].match <= open)
        return false;
    const char *text;
    int at = open + 1, length;
    while (tec_source_next(s, open, &at, span)) {
        if (!key && span->key_first < 0 && n-- == 0)
            return true;
        if (key && tec_source_key(s, span, &text, &length) && (size_t)length == strlen(key) &&
            memcmp(text, key, (size_t)length) == 0)
            return true;
    }
    return false;
}

struct tec_where tec_source_where(const struct tec_source *s, int first, int last)
{
    const struct tec_token *a = &s->tokens[first], *b = &s->tokens[last];
    int end = a->col + a->end - a->begin;
    if (b->line == a->line)
        end = b->col + b->end - b->begin;
    return (struct tec_where){s->file, a->line, a->col, end};
}

struct tec_where tec_source_where_table(const struct tec_source *s, int open)
{
    int word = open - 1;
    if (s->json || word < 0)
        return tec_source_where(s, open, open);
    if (word > 0 && symbol_is(s, word, '('))
        word--;
    static const char *const keywords[] = {"return", "in", "and", "or", "not", "local", NULL};
    if (s->tokens[word].kind != TEC_TOKEN_NAME || any_word(s, word, keywords))
        return tec_source_where(s, open, open);
    bool dotted = word >= 2 && symbol_is(s, word - 1, '.');
    return tec_source_where(s, dotted ? word - 2 : word, word);
}

struct tec_where tec_source_where_name(const struct tec_source *s, int line, const char *name)
{
    struct tec_where where = {s->file, line, 0, 0};
    int found = 0;
    for (int i = 0; i < s->n_tokens && s->tokens[i].line <= line; i++) {
        if (s->tokens[i].line == line && word_is(s, i, name) && found++ == 0)
            where = tec_source_where(s, i, i);
    }
    return found == 1 ? where : (struct tec_where){s->file, line, 0, 0};
}

/* The token of an option among the arguments of a call, which begin at a bracket; -1 = none. */
static int option_in(const struct tec_source *s, int open, const char *key)
{
    struct tec_source_span span;
    if (symbol_is(s, open, '{'))
        return tec_source_find_key(s, open, key, 0, &span) ? span.key_first : -1;
    for (int i = open + 1; i < s->tokens[open].match; i++) {
        if (s->tokens[i].kind != TEC_TOKEN_OPEN)
            continue;
        bool argument = symbol_is(s, i, '{') && (i == open + 1 || symbol_is(s, i - 1, ','));
        if (argument && tec_source_find_key(s, i, key, 0, &span))
            return span.key_first;
        i = s->tokens[i].match;
    }
    return -1;
}

struct tec_where tec_source_where_option(const struct tec_source *s, int line, const char *word,
                                         const char *key)
{
    int found = -1, n = 0;
    for (int i = 0; i + 1 < s->n_tokens && s->tokens[i].line <= line; i++) {
        bool call = s->tokens[i].line == line && word_is(s, i, word) &&
                    s->tokens[i + 1].kind == TEC_TOKEN_OPEN;
        int option = call ? option_in(s, i + 1, key) : -1;
        found = option >= 0 ? option : found;
        n += option >= 0;
    }
    return n == 1 ? tec_source_where(s, found, found) : tec_source_where_name(s, line, word);
}

struct key {
    const char *text;
    int n, token;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int shorter = x->n < y->n ? x->n : y->n;
    int differ = memcmp(x->text, y->text, (size_t)shorter);
    if (!differ)
        differ = x->n - y->n;
    return differ ? differ : x->token - y->token;
}

static void check_table(const struct tec_source *s, int open, struct key *keys,
                        struct tec_diagnostics *d)
{
    struct tec_source_span span;
    int at = open + 1, n = 0;
    while (tec_source_next(s, open, &at, &span)) {
        keys[n].token = span.key_first;
        if (tec_source_key(s, &span, &keys[n].text, &keys[n].n))
            n++;
    }
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    for (int i = 1; i < n; i++) {
        if (keys[i].n != keys[i - 1].n ||
            memcmp(keys[i].text, keys[i - 1].text, (size_t)keys[i].n) != 0)
            continue;
        struct tec_where first = tec_source_where(s, keys[i - 1].token, keys[i - 1].token);
        struct tec_diagnostic *e =
            tec_diagnostics_add(d, TEC_E013, tec_source_where(s, keys[i].token, keys[i].token),
                                "key '%.*s' stands twice in one table", keys[i].n, keys[i].text);
        tec_diagnostics_also(d, e, first, "first given here");
        tec_diagnostics_help(d, e, "remove one of them: only the last would count");
    }
}

void tec_source_check_keys(const struct tec_source *s, struct tec_arena *arena,
                           struct tec_diagnostics *d)
{
    struct tec_arena_mark mark = tec_arena_mark(arena);
    struct key *keys = TEC_NEW(arena, (size_t)s->n_tokens + 1, struct key);
    if (!keys) {
        d->out_of_memory = true;
        return;
    }
    for (int i = 0; i < s->n_tokens; i++)
        if (s->tokens[i].kind == TEC_TOKEN_OPEN && first_byte(s, i) == '{')
            check_table(s, i, keys, d);
    tec_arena_rewind(arena, mark);
}
