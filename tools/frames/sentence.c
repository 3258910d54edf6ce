/* sentence.c - a text that a node has made, in quotes on a line. */
#include "tools/frames/sentence.h"

#include "base/escape.h"

void tec_frame_print_sentence(FILE *out, const char *text)
{
    fputs("  \"", out);
    tec_escape_print(out, text);
    fputc('"', out);
}
