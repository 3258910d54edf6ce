/* text.c - texts of scripts, cut and made printable where the host keeps them. */
#include "policies/host/host.h"

void tec_host_copy_text(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < room; n++)
        to[n] = (char)(from[n] >= ' ' && from[n] < 127 ? from[n] : '?');
    to[n] = '\0';
}
