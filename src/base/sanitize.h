/* Is this a build with AddressSanitizer? It reserves terabytes of addresses, so limits on memory
 * that the kernel counts by address cannot be set in one. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define AQ_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AQ_SANITIZED 1
#endif
#endif
#ifndef AQ_SANITIZED
#define AQ_SANITIZED 0
#endif
