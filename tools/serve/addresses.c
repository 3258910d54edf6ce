/* addresses.c - the addresses of this machine's interfaces, for links that open. */
#include "tools/serve/addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether a client may name the address: it is of IPv4, or, with `six`, one of IPv6 that does not
 * need an interface beside it. */
static bool is_named(const struct sockaddr *a, bool six)
{
    if (!a || (a->sa_family != AF_INET && !(six && a->sa_family == AF_INET6)))
        return false;
    struct sockaddr_in6 of;
    if (a->sa_family == AF_INET)
        return true;
    memcpy(&of, a, sizeof of);
    return !IN6_IS_ADDR_LINKLOCAL(&of.sin6_addr);
}

static int add(char out[TEC_ADDRESSES][TEC_ADDRESS], int n, const struct sockaddr *a)
{
    char text[INET6_ADDRSTRLEN + 1];
    bool six = a->sa_family == AF_INET6;
    socklen_t size = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (n == TEC_ADDRESSES || getnameinfo(a, size, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
        return n;
    snprintf(out[n], TEC_ADDRESS, "%s%s%s", six ? "[" : "", text, six ? "]" : "");
    return n + 1;
}

int tec_addresses_of(const char *host, char out[TEC_ADDRESSES][TEC_ADDRESS])
{
    bool six = strcmp(host, "[::]") == 0;
    struct ifaddrs *all = NULL;
    int n = 0;
    if ((six || strcmp(host, "0.0.0.0") == 0) && getifaddrs(&all) == 0) {
        for (int local = 0; local < 2; local++)
            for (const struct ifaddrs *one = all; one; one = one->ifa_next)
                if ((one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK) == !local &&
                    is_named(one->ifa_addr, six))
                    n = add(out, n, one->ifa_addr);
        freeifaddrs(all);
    }
    if (n == 0)
        snprintf(out[n++], TEC_ADDRESS, "%s", host);
    return n;
}
