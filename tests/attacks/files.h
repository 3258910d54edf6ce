/* files.h - hostile policy files that are too long to be written down. */
#ifndef TEC_TESTS_ATTACKS_FILES_H
#define TEC_TESTS_ATTACKS_FILES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_ROOM = 1 << 20 };

struct file_text {
    char *at, *end;
};

static inline void __attribute__((format(printf, 2, 3)))
put(struct file_text *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(f->at, (size_t)(f->end - f->at), format, args);
    va_end(args);
    f->at += n < f->end - f->at ? n : f->end - f->at - 1;
}

static inline void repeat(struct file_text *f, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        put(f, "%s", text);
}

#define GOOD "return policy { name = 'x', api = 1, plan = function() end }"

/* Names looked up through 50 functions of 40 parameters each, forty thousand times. */
static inline void deep_names(struct file_text *f)
{
    for (int level = 0; level < 50; level++) {
        put(f, "local f = function(");
        for (int i = 0; i < 40; i++)
            put(f, "%sl%d", i ? "," : "", i);
        put(f, ")\n");
    }
    for (int i = 0; i < 1000; i++) {
        put(f, "f = function() ");
        repeat(f, 20, "a(a)");
        put(f, " end\n");
    }
    repeat(f, 50, " end");
    put(f, "\n" GOOD);
}

static inline void adjacent_labels(struct file_text *f)
{
    for (int i = 0; i < 40000; i++)
        put(f, "::l%d::", i);
    put(f, GOOD);
}

static inline void many_labels(struct file_text *f)
{
    for (int i = 0; i < 20000; i++)
        put(f, "::l%d:: do end ", i);
    put(f, GOOD);
}

static inline void many_gotos(struct file_text *f)
{
    repeat(f, 15000, "do goto out end ");
    put(f, "::out:: " GOOD);
}

static inline void many_locals(struct file_text *f)
{
    for (int i = 0; i < 250; i++)
        put(f, "local l%d = %d\n", i, i);
    put(f, GOOD);
}

static inline void many_upvalues(struct file_text *f)
{
    for (int level = 0; level < 2; level++) {
        for (int i = 0; i < 150; i++)
            put(f, "local a%d_%d = 1\n", level, i);
        put(f, "local function f%d()\n", level);
    }
    for (int i = 0; i < 150; i++)
        put(f, "a0_%d = a1_%d\n", i, i);
    put(f, "end end " GOOD);
}

static inline void many_constants(struct file_text *f)
{
    put(f, "local t = {");
    for (int i = 0; i < 60000; i++)
        put(f, "%d.5,", i);
    put(f, "} " GOOD);
}

static inline void many_strings(struct file_text *f)
{
    put(f, "local t = {");
    for (int i = 0; i < 40000; i++)
        put(f, "'s%d',", i);
    put(f, "} " GOOD);
}

static inline void many_functions(struct file_text *f)
{
    repeat(f, 12000, "do local f = function() end end ");
    put(f, GOOD);
}

static inline void deep_parentheses(struct file_text *f)
{
    put(f, "local x = ");
    repeat(f, 50000, "(");
    repeat(f, 50000, ")");
}

static inline void deep_tables(struct file_text *f)
{
    put(f, "local x = ");
    repeat(f, 50000, "{");
    repeat(f, 50000, "}");
}

static inline void deep_blocks(struct file_text *f)
{
    repeat(f, 30000, "do ");
    repeat(f, 30000, "end ");
}

static inline void deep_functions(struct file_text *f)
{
    repeat(f, 10000, "return function() ");
    repeat(f, 10000, "end ");
}

static inline void deep_operators(struct file_text *f)
{
    put(f, "local x = ");
    repeat(f, 60000, "not ");
    put(f, "1 " GOOD);
}

static inline void right_operators(struct file_text *f)
{
    put(f, "local x = 'a'");
    repeat(f, 60000, "..'a'");
    put(f, " " GOOD);
}

static inline void left_operators(struct file_text *f)
{
    put(f, "local a = 1 local x = a");
    repeat(f, 60000, "+a");
    put(f, " " GOOD);
}

static inline void long_elseif(struct file_text *f)
{
    put(f, "local a if a then");
    repeat(f, 15000, " elseif a then");
    put(f, " end " GOOD);
}

static inline void long_and_or(struct file_text *f)
{
    put(f, "local a local x = a");
    repeat(f, 40000, " and a or a");
    put(f, " " GOOD);
}

static inline void many_arguments(struct file_text *f)
{
    put(f, "local a local x = type(a");
    repeat(f, 300, ", a");
    put(f, ") " GOOD);
}

static inline void many_parameters(struct file_text *f)
{
    put(f, "local function f(a0");
    for (int i = 1; i < 300; i++)
        put(f, ", a%d", i);
    put(f, ") end " GOOD);
}

static inline void many_targets(struct file_text *f)
{
    put(f, "local t = {} t.x");
    repeat(f, 50000, ", t.x");
    put(f, " = 1 " GOOD);
}

static inline void long_name(struct file_text *f)
{
    put(f, "local ");
    repeat(f, 200000, "n");
    put(f, " = 1 " GOOD);
}

static inline void long_string(struct file_text *f)
{
    put(f, "local s = '");
    repeat(f, 200000, "s");
    put(f, "' " GOOD);
}

static inline void long_numeral(struct file_text *f)
{
    put(f, "local n = ");
    repeat(f, 200000, "7");
    put(f, " " GOOD);
}

static inline void long_line(struct file_text *f)
{
    repeat(f, 500000, " ");
    put(f, GOOD);
}

static inline void long_comment(struct file_text *f)
{
    put(f, "--[==[");
    repeat(f, 240000, "]=");
    put(f, "]==] " GOOD);
}

static inline void long_bracket(struct file_text *f)
{
    put(f, "local s = [");
    repeat(f, 100000, "=");
    put(f, "[ " GOOD);
}

static inline void many_lines(struct file_text *f)
{
    repeat(f, 500000, "\n");
    put(f, GOOD);
}

static inline void too_long(struct file_text *f)
{
    repeat(f, 600000, "-");
}

static inline void many_errors(struct file_text *f)
{
    repeat(f, 250000, "\xff\x01");
}

#endif
