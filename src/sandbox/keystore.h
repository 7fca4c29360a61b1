/* The form that every JDK keeps the certificates in that it trusts: a magic number, a version, a
 * count, entries, and a seal. The seal is a SHA-1 with the password that everybody knows; it
 * protects nothing and is checked. */
#pragma once

#include "base/mem.h"

#define AQ_KEYSTORE_MAGIC 0xfeedfeedu
enum { AQ_KEYSTORE_VERSION = 2, AQ_KEYSTORE_HEAD = 12, AQ_KEYSTORE_SEAL = 20 };

/* Appends the seal of all that is in it. */
void aq_keystore_seal(aq_buf *store);
