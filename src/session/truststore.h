/* Java's own form of what it trusts. */
#pragma once

#include <stdint.h>

#include "base/mem.h"

/* Appends a keystore that holds the certificate (PEM) under that name, since that second. -EINVAL
 * when it is no certificate. */
int aq_truststore(const char *pem, const char *alias, int64_t since, aq_buf *out);
