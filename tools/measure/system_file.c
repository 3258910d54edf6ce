/* system_file.c - reads single values out of the files of /proc and /sys. */
#include "tools/measure/system_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cut blanks at the end of the text, and return where it starts after those at its beginning. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

static FILE *open_file(const char *system, const char *path)
{
    char whole[1024];
    int n = snprintf(whole, sizeof whole, "%s%s", system, path);
    return n > 0 && (size_t)n < sizeof whole ? fopen(whole, "re") : NULL;
}

/* The value of a line of `key`, or NULL where the line has another. */
static char *value_of(char *line, const char *key)
{
    size_t n = key ? strlen(key) : 0;
    if (key && (strncmp(line, key, n) != 0 || !strchr(" \t:", line[n]) || !line[n]))
        return NULL;
    return trim(line + n + (key ? strspn(line + n, " \t:") : 0));
}

bool tec_system_line(char text[TEC_SYSTEM_LINE], const char *system, const char *path,
                     const char *key)
{
    char line[TEC_SYSTEM_LINE];
    bool found = false;
    FILE *f = open_file(system, path);
    text[0] = '\0';
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *value = value_of(line, key);
        if (!value)
            continue;
        snprintf(text, TEC_SYSTEM_LINE, "%s", value);
        found = true;
    }
    if (f)
        fclose(f);
    return found && text[0];
}

int64_t tec_system_number(const char *system, const char *path, const char *key, int64_t missing)
{
    char text[TEC_SYSTEM_LINE], *end;
    if (!tec_system_line(text, system, path, key))
        return missing;
    long long value = strtoll(text, &end, 10);
    return end == text ? missing : value;
}

int tec_system_list(const char *system, const char *path, const char *key, int missing)
{
    char text[TEC_SYSTEM_LINE];
    int n = 0;
    if (!tec_system_line(text, system, path, key))
        return missing;
    for (char *at = text; isdigit((unsigned char)*at);) {
        long first = strtol(at, &at, 10), last = first;
        if (*at == '-')
            last = strtol(at + 1, &at, 10);
        if (first > last || last > 1 << 20)
            break;
        n += (int)(last - first + 1);
        at += *at == ',';
    }
    return n;
}

void tec_system_chosen(char text[TEC_SYSTEM_LINE])
{
    const char *open = strchr(text, '[');
    size_t n = open ? strcspn(open + 1, "]") : 0;
    if (!open)
        return;
    memmove(text, open + 1, n);
    text[n] = '\0';
}
