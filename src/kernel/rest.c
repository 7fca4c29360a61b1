/* See rest.h. Only segments that nobody may write: those with relocations in them are no longer
 * what the file has. */
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "kernel/rest.h"

static int give_back(struct dl_phdr_info *info, size_t size, void *arg)
{
    const uintptr_t page = 4096;

    (void)size, (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = (info->dlpi_addr + p->p_vaddr) / page * page,
                  to = (info->dlpi_addr + p->p_vaddr + p->p_memsz) / page * page;

        if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && to > from)
            madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 1; /* the first is the program itself */
}

void aq_process_rest(void)
{
    dl_iterate_phdr(give_back, NULL);
}
