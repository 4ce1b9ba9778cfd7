// Apple's path to <bnns/bnns_structures.h>.
#include <bnns/bnns_structures.h>
