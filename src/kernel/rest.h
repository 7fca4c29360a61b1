/* A process that waits for long gives back what it can have again at any time. */
#pragma once

enum { AQ_REST_MS = 100 }; /* whoever waits that long will wait on */

/* The pages of our own program that are as they are in its file: the kernel has them, and shows
 * them again to whoever needs them. Needs madvise. */
void aq_process_rest(void);
