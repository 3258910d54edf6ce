/* lines.c - reads a stream line by line; a line may be as long as memory allows. */
#include "tools/cli/lines.h"

#include "base/file_kind.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum tec_status grow(struct tec_lines *lines, struct tec_error *err)
{
    size_t room = lines->room ? 2 * lines->room : 4096;
    char *text = tec_heap_get(lines->heap, room);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "line %lld: no memory for %zu bytes of it",
                        (long long)lines->number, room);
    if (lines->n)
        memcpy(text, lines->text, lines->n);
    tec_heap_put(lines->heap, lines->text);
    lines->text = text;
    lines->room = room;
    return TEC_OK;
}

enum tec_status tec_lines_open(struct tec_lines *lines, const char *path, struct tec_error *err)
{
    struct stat st;
    int fd = -1;
    TEC_TRY(tec_file_open_regular(&fd, &st, path, err));
    lines->in = fdopen(fd, "r");
    if (lines->in)
        return TEC_OK;
    close(fd);
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory to read it", path);
}

enum tec_status tec_lines_next(struct tec_lines *lines, bool *more, struct tec_error *err)
{
    int c = EOF;
    lines->n = 0;
    lines->number++;
    while ((c = getc(lines->in)) != EOF && c != '\n') {
        if (lines->n + 1 >= lines->room)
            TEC_TRY(grow(lines, err));
        lines->text[lines->n++] = (char)c;
    }
    if (ferror(lines->in))
        return tec_fail(err, TEC_IO, "line %lld cannot be read: %s", (long long)lines->number,
                        strerror(errno));
    *more = c == '\n' || lines->n > 0;
    if (lines->n + 1 >= lines->room)
        TEC_TRY(grow(lines, err));
    if (c == '\n' && lines->n > 0 && lines->text[lines->n - 1] == '\r')
        lines->n--;
    lines->text[lines->n] = '\0';
    return TEC_OK;
}

void tec_lines_finish(struct tec_lines *lines)
{
    tec_heap_put(lines->heap, lines->text);
    *lines = (struct tec_lines){0};
}
