/* addresses.h - where a socket that listens everywhere is reached. */
#ifndef TEC_TOOLS_SERVE_ADDRESSES_H
#define TEC_TOOLS_SERVE_ADDRESSES_H

#include <stddef.h>

enum { TEC_ADDRESS = 64, TEC_ADDRESSES = 8 };

/* Of a host in a URL ("0.0.0.0", "[::]", "robot"): itself, or, where it stands for every address,
 * the addresses of this machine, those first that others reach, with brackets around one of IPv6;
 * those of a link alone are left out. Returns how many there are, 1 to TEC_ADDRESSES. */
int tec_addresses_of(const char *host, char out[TEC_ADDRESSES][TEC_ADDRESS]);

#endif
