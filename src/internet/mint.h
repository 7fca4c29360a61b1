/* Certificates for every name, signed by the world's authority as they are asked for, and the key
 * that belongs to each. Nothing in them depends on chance: keys, serials and signatures come from
 * the world's own key. A signature has the same length always, so that the two worlds of a seed
 * send records of the same size. */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "base/err.h"
#include "internet/world.h"

typedef struct aq_mint aq_mint;

aq_mint *aq_mint_new(const aq_internet_world *world, aq_err *err);
/* Gives the connection the certificate for `name` (a host name or an address). */
int aq_mint_use(aq_mint *m, SSL *ssl, const char *name, int64_t now);
