/* Answers getrandom(2) from the seed of the run, so that the kernel's random numbers repeat. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	static uint64_t state;
	static int seeded;
	unsigned char *bytes = to;
	size_t i;

	(void)flags;
	if (!seeded) {
		const char *text = getenv("SEEKWELL_GUEST_SEED");

		state = text ? strtoull(text, NULL, 10) : 0;
		seeded = 1;
	}
	for (i = 0; i < n; i++) {
		/* SplitMix64, one byte per step. */
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		bytes[i] = (unsigned char)((z ^ (z >> 31)) >> 56);
	}
	return (ssize_t)n;
}
