/* A vDSO of our own: the small library that the kernel lends to every program, so that it can ask
 * for the time without a call. Ours has the same functions, and each makes the call: then it is
 * seen, and answered in virtual time. Nothing of the host's is in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    AQ_VDSO_BYTES = 4096,
    AQ_VDSO_TEXT = 0x800, /* where its code begins */
    AQ_VDSO_CALL = 0x805, /* an instruction that makes a call, whatever its number */
};

/* The library as it lies in memory, for a kernel of this version (0x06018c: 6.1.140; 0: it does not
 * say). */
void aq_vdso_make(uint32_t version, uint8_t ret[static AQ_VDSO_BYTES]);
/* "6.1.140-1", also behind other words ("#1 SMP Debian 6.1.140-1 (2025-05-22)"); 0: none in it. */
uint32_t aq_vdso_version(const char *text);
